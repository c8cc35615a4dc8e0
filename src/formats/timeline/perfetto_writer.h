#pragma once

#include <span>

#include "src/base/result.h"
#include "src/formats/io/byte_sink.h"
#include "src/formats/timeline/chrome_writer.h"
#include "src/formats/timeline/timeline.h"

namespace etude {

// Writes the parts as a Perfetto trace (docs/formats/perfetto.md): a process track for each part,
// below it a track for each thread and stream and for each counter; names, categories and texts of
// arguments are written once. Perfetto has no times below 0: a timeline that begins earlier is
// moved to begin at 0. The same parts give the same bytes. Errors are those of `sink`.
Result<TimelineReport> WritePerfettoTimeline(std::span<const TimelinePart> parts,
                                             const ByteSink& sink);

}  // namespace etude
