#include "src/formats/io/byte_source.h"

#include <cstdint>
#include <string>

#include "src/formats/fuzz_support.h"
#include "src/formats/read_trace.h"

// Whole files: decompression and detection, then the reader of the detected kind.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const etude::RunContext context = etude::fuzz::SmallLimits();
  auto source = etude::ByteSource::FromMemory("fuzz", std::string(etude::fuzz::Bytes(data, size)),
                                              context.limits);
  (void)etude::ReadTrace(source, {}, context);
  return 0;
}
