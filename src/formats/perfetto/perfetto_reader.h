#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "src/formats/trace_reader.h"

namespace etude {

// Reads Perfetto traces (.pftrace): slices of track events become the nodes of a profile, as the
// Chrome events that they stand for would (docs/formats/perfetto.md). Counters, instants and
// packets of other kinds are counted as skipped events.
std::unique_ptr<TraceReader> MakePerfettoReader(std::string name, const ReadOptions& options,
                                                const RunContext& context);

// Whether `beginning`, the first bytes of a file, is that of a Perfetto trace.
bool LooksLikePerfetto(std::string_view beginning);

}  // namespace etude
