#pragma once

#include "src/trace/trace.h"
#include "src/trace/trace_builder.h"
#include "src/trace/trace_copy.h"

// For tests and benchmarks only.
namespace etude::testing_same {

// Returns true if both traces have equal nodes, in order, and equal facts of the whole, whatever
// the ids of strings, lists and lanes in the tables.
inline bool SameTrace(const Trace& a, const Trace& b) {
  TraceBuilder to_a;
  TraceBuilder to_b;
  const Result<Trace> plain_a = CopyTrace(a, to_a);
  const Result<Trace> plain_b = CopyTrace(b, to_b);
  if (!plain_a || !plain_b || !plain_a->SameContent(*plain_b)) return false;
  for (const StatInfo& info : StatTable()) {
    if (a.stats()[info.stat] != b.stats()[info.stat]) return false;
  }
  return a.info().rank == b.info().rank && a.info().pid == b.info().pid &&
         a.info().time == b.info().time && a.info().start_ts == b.info().start_ts &&
         a.info().finish_ts == b.info().finish_ts;
}

}  // namespace etude::testing_same
