#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/formats/timeline/graph_writer.h"
#include "src/trace/trace.h"

namespace etude {

// Ways to reduce a graph to a drawable size, mildest first.
enum class Collapse : uint8_t {
  kNone,   // a box for each node
  kDepth,  // nodes below a nesting depth are merged into their ancestor
  kPath,   // in addition, such nodes with equal names from the root down are merged
  kName,   // nodes of one name, ignoring numbers, are merged
  kKind,   // nodes of one kind and place are merged
};
std::string_view Name(Collapse collapse);

struct GraphView {
  DrawnGraph graph;
  Collapse collapse = Collapse::kNone;
  uint32_t depth = 0;     // for kDepth and kPath: the deepest drawn nesting; roots have 0
  uint64_t inside = 0;    // edges of the trace within one box
  uint64_t dangling = 0;  // references to missing nodes
};

// Returns the nodes of `trace` and their dependencies in at most `most_boxes` boxes (1 or more).
// Device work is nested below its launcher. Of kDepth and kPath, each at its greatest possible
// depth, the one with more boxes is used; kKind is the last resort, whatever the limit. O(nodes x
// depths + edges log edges).
GraphView ViewGraph(const Trace& trace, size_t most_boxes);

}  // namespace etude
