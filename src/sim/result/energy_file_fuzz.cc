// Files of figures for the energy of a step.
#include <cstddef>
#include <cstdint>
#include <string>

#include "src/sim/result/energy_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(etude::ParseEnergyFigures(text, "input"));
  return 0;
}
