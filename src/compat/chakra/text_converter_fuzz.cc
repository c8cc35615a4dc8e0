#include "src/compat/chakra/text_converter.h"

#include <cstdint>

#include "src/formats/fuzz_support.h"

// Fuzzes models in ASTRA-sim 1's format.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto discard = [](const std::string&, std::string_view) { return etude::Status(); };
  (void)etude::compat::ConvertText(
      etude::fuzz::Bytes(data, size),
      {.input = "fuzz", .output = "out", .num_npus = 2, .num_passes = 2}, discard);
  return 0;
}
