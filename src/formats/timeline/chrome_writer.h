#pragma once

#include <cstdint>
#include <span>

#include "src/base/result.h"
#include "src/formats/io/byte_sink.h"
#include "src/formats/timeline/timeline.h"
#include "src/trace/trace.h"

namespace etude {

// Numbers of written and omitted items.
struct TimelineReport {
  uint64_t slices = 0;
  uint64_t flows = 0;
  uint64_t counters = 0;  // values of counters
  uint64_t bytes = 0;
  uint64_t untimed = 0;  // as in TimelinePlan
  uint64_t crowded = 0;
  uint64_t backward = 0;
  uint64_t split_tracks = 0;

  void Add(const TimelinePlan& plan);
};

// Writes the parts as a trace in Chrome's event format (docs/formats/timeline.md), JSON for
// chrome://tracing and Perfetto. Returns errors of `sink`.
Result<TimelineReport> WriteChromeTimeline(std::span<const TimelinePart> parts,
                                           const ByteSink& sink);

// Writes a trace as the profiler would. A profile (TraceFormat::kKineto) stays one: its events keep
// their processes, threads and arguments. Events without work (arrows, marks, counters) are
// omitted.
Result<TimelineReport> WriteProfile(const Trace& trace, const ByteSink& sink);

}  // namespace etude
