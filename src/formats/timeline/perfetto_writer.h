#pragma once

#include <span>

#include "src/base/result.h"
#include "src/formats/io/byte_sink.h"
#include "src/formats/timeline/chrome_writer.h"
#include "src/formats/timeline/timeline.h"

namespace etude {

// Writes the parts as a Perfetto trace (docs/formats/perfetto.md): a process track per part, below
// it a track per thread, stream and counter. Names, categories and argument texts are written once.
// Perfetto has no negative times: a timeline that begins earlier is shifted to begin at 0.
// Deterministic. Returns errors of `sink`.
Result<TimelineReport> WritePerfettoTimeline(std::span<const TimelinePart> parts,
                                             const ByteSink& sink);

}  // namespace etude
