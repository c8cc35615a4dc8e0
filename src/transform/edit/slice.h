#pragma once

#include <cstdint>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/transform/edit/selection.h"

namespace etude {

struct SliceResult {
  Trace trace;
  uint64_t selected = 0;          // nodes that the selection means
  uint64_t launched = 0;          // device work that these started, kept with them
  uint64_t around = 0;            // nodes kept because selected ones are below them
  uint64_t cut_dependencies = 0;  // of kept nodes on others
  uint64_t dangling = 0;          // references of kept nodes to nodes that were never there
  uint64_t untimed = 0;           // left out because it is not known when they ran
  bool renumbered = false;        // ids were not unique: all nodes have new ones
};

// The part of `trace` that `selection` means, as a trace of its own: the selected nodes, the work
// that they launched on devices (unless streams are selected), and the nodes above, so that nesting
// stays whole. Nodes keep ids, times and facts; the trace keeps its facts and process groups.
// Errors are those of SelectNodes.
Result<SliceResult> Slice(const Trace& trace, const Selection& selection, const Limits& limits);

}  // namespace etude
