// Tables of algorithms by size.
#include <cstddef>
#include <cstdint>
#include <string>

#include "src/sim/machine/algorithm_rules.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  etude::SimMachine machine;
  machine.dims.resize(2);
  static_cast<void>(etude::UseAlgorithmRules(text, "input", machine));
  return 0;
}
