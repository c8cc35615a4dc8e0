#pragma once

#include "src/trace/trace.h"
#include "src/trace/trace_builder.h"

namespace etude {

// What simulations say of their traces, as facts of the whole. docs/formats/chakra.md says how they
// are written.

// The times are those of a simulated job, which has one clock for all its ranks.
void StateSimulated(TraceBuilder& builder);
bool IsSimulated(const Trace& trace);

// The host is the machine's computer: simulators run what lies on its threads, labels too, as a
// device's computations, and durations are without callees.
void StateHostComputes(TraceBuilder& builder);
bool HostComputes(const Trace& trace);
bool HostComputes(TraceBuilder& builder);

}  // namespace etude
