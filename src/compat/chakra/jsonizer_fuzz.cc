#include "src/compat/chakra/jsonizer.h"

#include <cstdint>

#include "src/formats/fuzz_support.h"

// Fuzzes Chakra's jsonizer.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto discard = [](std::string_view) { return etude::Status(); };
  (void)etude::compat::WriteChakraJson(etude::fuzz::Bytes(data, size), "fuzz", discard);
  return 0;
}
