#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/formats/fuzz_support.h"
#include "src/formats/perfetto/perfetto_reader.h"
#include "src/formats/timeline/perfetto_writer.h"

// Fuzzes the reader of Perfetto traces, and writes the traces that it read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto trace =
      etude::fuzz::ReadWith(etude::MakePerfettoReader, etude::fuzz::Bytes(data, size));
  if (!trace) return 0;
  const etude::TimelinePart part{.trace = &*trace, .name = "fuzz"};
  const auto sink = [](std::string_view) { return etude::Status(); };
  if (!etude::WritePerfettoTimeline({&part, 1}, sink)) std::abort();
  if (!etude::WriteChromeTimeline({&part, 1}, sink)) std::abort();
  return 0;
}
