#pragma once

#include <cstdint>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/transform/edit/selection.h"

namespace etude {

struct SliceResult {
  Trace trace;
  uint64_t selected = 0;          // nodes in the selection
  uint64_t launched = 0;          // device work kept because these launched it
  uint64_t around = 0;            // nodes kept because selected ones are below them
  uint64_t cut_dependencies = 0;  // dependencies of kept nodes on others
  uint64_t dangling = 0;          // references of kept nodes to missing nodes
  uint64_t untimed = 0;           // excluded because their times are unknown
  bool renumbered = false;        // ids were not unique: all nodes have new ones
};

// Returns the part of `trace` in `selection` as a trace of its own: the selected nodes, device work
// launched by them (unless streams are selected), and their ancestors, so that nesting stays
// complete. Nodes keep ids, times and facts; the trace keeps its facts and process groups. Errors
// are those of SelectNodes.
Result<SliceResult> Slice(const Trace& trace, const Selection& selection, const Limits& limits);

}  // namespace etude
