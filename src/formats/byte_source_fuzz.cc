#include <cstdint>
#include <string>

#include "src/formats/byte_source.h"
#include "src/formats/read_trace.h"

// Whole files: decompression and detection, then whichever reader they ask for.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  etude::RunContext context;
  context.limits.element_bytes = size_t{1} << 20;
  context.limits.total_bytes = uint64_t{16} << 20;
  context.limits.ratio_grace_bytes = uint64_t{1} << 20;
  auto source = etude::ByteSource::FromMemory(
      "fuzz", std::string(reinterpret_cast<const char*>(data), size), context.limits);
  (void)etude::ReadTrace(source, {}, context);
  return 0;
}
