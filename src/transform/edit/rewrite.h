#pragma once

#include <functional>
#include <optional>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/trace/trace_builder.h"

namespace etude {

// What a node says, on its way into a copy of the trace. Ids are those of both traces.
struct RewrittenNode {
  NodeId node;  // of the trace that is copied
  NodeRow row;
  std::optional<Comm> comm;
};

// A copy of `trace` with the same nodes, of which `change` may alter everything but identity; lists
// and texts that are new are put into the builder. An error of it ends the copy. Nodes whose ids
// are not unique have their positions for ids.
Result<Trace> RewriteTrace(const Trace& trace, const Limits& limits,
                           const std::function<Status(RewrittenNode&, TraceBuilder&)>& change);

}  // namespace etude
