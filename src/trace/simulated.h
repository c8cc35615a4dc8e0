#pragma once

#include "src/trace/trace.h"
#include "src/trace/trace_builder.h"

namespace etude {

// Facts that simulations add to their traces. docs/formats/chakra.md has the format.

// Marks a trace whose times are those of a simulated job, with one clock for all ranks.
void StateSimulated(TraceBuilder& builder);
bool IsSimulated(const Trace& trace);

// Marks a trace whose host does the computing: simulators run the nodes of its threads, including
// labels, like device computations, and durations exclude callees.
void StateHostComputes(TraceBuilder& builder);
bool HostComputes(const Trace& trace);
bool HostComputes(TraceBuilder& builder);

}  // namespace etude
