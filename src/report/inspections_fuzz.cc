#include "src/report/inspections.h"

#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/formats/fuzz_support.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/read_trace.h"
#include "src/formats/timeline/perfetto_writer.h"
#include "src/report/page/rank_figures.h"
#include "src/trace/validator.h"
#include "src/transform/edit/merge.h"
#include "src/transform/edit/slice.h"
#include "src/transform/to_chakra.h"

// Fuzzes the commands' processing of a trace after reading.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const etude::RunContext context = etude::fuzz::SmallLimits();
  auto source = etude::ByteSource::FromMemory("fuzz", std::string(etude::fuzz::Bytes(data, size)),
                                              context.limits);
  const auto trace = etude::ReadTrace(source, {}, context);
  if (!trace) return 0;
  (void)etude::Validate(*trace);
  for (const etude::Inspection& inspection : etude::Inspections()) {
    (void)etude::Inspect(inspection, *trace, {}, {}, context);
  }
  if (!etude::CompareTraces(*trace, *trace, "fuzz").same) std::abort();
  (void)etude::ToChakra(*trace, {.break_cycles = true, .limits = context.limits});
  (void)etude::Slice(*trace, {.times = {"1ms..2ms"}}, context.limits);
  const etude::MergeInput merged{.trace = &*trace, .label = "rank 0"};
  (void)etude::Merge({&merged, 1}, context.limits);
  const etude::TimelinePart part{.trace = &*trace, .name = "fuzz"};
  const auto discard = [](std::string_view) { return etude::Status(); };
  if (!etude::WritePerfettoTimeline({&part, 1}, discard)) std::abort();
  (void)etude::FiguresOf(*trace, nullptr, /*most_events=*/1000);
  return 0;
}
