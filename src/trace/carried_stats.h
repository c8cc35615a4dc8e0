#pragma once

#include "src/trace/stats.h"
#include "src/trace/trace.h"
#include "src/trace/trace_builder.h"

namespace etude {

// What was met on the way to a trace must not be forgotten when the trace is written to a file and
// read again: it is kept as a fact of the trace, "etude_met", by name and count.

// Keeps the counts of lost, guessed and cut things so far among `builder`'s facts. Those that the
// trace itself shows again (references, cycles) are not kept.
void CarryStats(TraceBuilder& builder);

// The trace's own counts and those it carries; of both the larger.
Stats CarriedStats(const Trace& trace);

}  // namespace etude
