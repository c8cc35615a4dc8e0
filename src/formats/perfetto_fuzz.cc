#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/formats/perfetto_reader.h"
#include "src/formats/perfetto_writer.h"

// Perfetto traces, in chunks whose size the input's first byte decides. What was read can be
// written.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  etude::RunContext context;
  context.limits.element_bytes = size_t{1} << 20;
  context.limits.depth = 64;
  const size_t chunk = size == 0 ? 1 : 1 + size_t{data[0]} * 7;
  const auto reader = etude::MakePerfettoReader("fuzz", {}, context);
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    if (!reader->Push(rest.substr(0, chunk))) return 0;
    rest.remove_prefix(std::min(chunk, rest.size()));
  }
  const auto trace = reader->Finish(/*cut=*/false);
  if (!trace) return 0;
  const etude::TimelinePart part{.trace = &*trace, .name = "fuzz"};
  const auto sink = [](std::string_view) { return etude::Status(); };
  if (!etude::WritePerfettoTimeline({&part, 1}, sink)) std::abort();
  if (!etude::WriteChromeTimeline({&part, 1}, sink)) std::abort();
  return 0;
}
