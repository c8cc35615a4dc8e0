#pragma once

#include "src/trace/stats.h"
#include "src/trace/trace.h"
#include "src/trace/trace_builder.h"

namespace etude {

// Counts made while reading a trace survive writing it: they are stored as a fact of the trace,
// "etude_met", by name and count.

// Stores the counts of lost, guessed and cut things so far as a fact in `builder`. Counts that can
// be derived again from the trace (references, cycles) are not stored.
void CarryStats(TraceBuilder& builder);

// Returns, for each count, the larger of the trace's own and the stored one.
Stats CarriedStats(const Trace& trace);

}  // namespace etude
