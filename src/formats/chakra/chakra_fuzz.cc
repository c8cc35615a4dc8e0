#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/formats/chakra/chakra_reader.h"
#include "src/formats/chakra/chakra_writer.h"
#include "src/formats/fuzz_support.h"

// Chakra traces. Whatever was read can be written in both ways.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto trace = etude::fuzz::ReadWith(etude::MakeChakraReader, etude::fuzz::Bytes(data, size));
  if (!trace) return 0;
  for (const bool verbatim : {false, true}) {
    const auto sink = [](std::string_view) { return etude::Status(); };
    if (!etude::WriteChakra(*trace, {.verbatim = verbatim}, sink)) std::abort();
  }
  return 0;
}
