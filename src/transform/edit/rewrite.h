#pragma once

#include <functional>
#include <optional>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/trace/trace_builder.h"

namespace etude {

// Facts of a node on their way into a copy of the trace. Ids are those of both traces.
struct RewrittenNode {
  NodeId node;  // of the copied trace
  NodeRow row;
  std::optional<Comm> comm;
};

// Returns a copy of `trace` with the same nodes. `change` may alter everything but their identity,
// and adds new lists and texts to the builder; its errors end the copy. If ids are not unique,
// nodes get their positions as ids.
Result<Trace> RewriteTrace(const Trace& trace, const Limits& limits,
                           const std::function<Status(RewrittenNode&, TraceBuilder&)>& change);

}  // namespace etude
