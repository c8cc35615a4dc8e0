#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "src/formats/trace_reader.h"

namespace etude {

// Returns a reader of Perfetto traces (.pftrace). Slices of track events become the nodes of a
// profile, like the corresponding Chrome events (docs/formats/perfetto.md). Counters, instants and
// packets of other kinds are counted as skipped events.
std::unique_ptr<TraceReader> MakePerfettoReader(std::string name, const ReadOptions& options,
                                                const RunContext& context);

// Returns whether `beginning`, the first bytes of a file, is that of a Perfetto trace.
bool LooksLikePerfetto(std::string_view beginning);

}  // namespace etude
