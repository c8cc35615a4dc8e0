// Configuration files of ASTRA-sim.
#include <cstddef>
#include <cstdint>
#include <string>

#include "src/sim/machine/astra_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  etude::SimMachine machine;
  static_cast<void>(etude::ParseAstraNetwork(text, "input", machine));
  static_cast<void>(etude::ParseAstraSystem(text, "input", machine));
  static_cast<void>(etude::ParseAstraMemory(text, "input", machine));
  return 0;
}
