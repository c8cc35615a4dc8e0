#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/formats/timeline/graph_writer.h"
#include "src/trace/trace.h"

namespace etude {

// How a graph was made small enough to draw, mildest first.
enum class Collapse : uint8_t {
  kNone,   // a box for each node
  kDepth,  // what is below a depth of nesting goes into the node above it
  kPath,   // of such nodes, those with the same names from the root down are one
  kName,   // those of one name, numbers in names aside, are one
  kKind,   // those of one kind and place are one
};
std::string_view Name(Collapse collapse);

struct GraphView {
  DrawnGraph graph;
  Collapse collapse = Collapse::kNone;
  uint32_t depth = 0;     // of kDepth and kPath: the deepest nesting that is drawn; roots have 0
  uint64_t inside = 0;    // edges of the trace within one box
  uint64_t dangling = 0;  // references to nodes that are not there
};

// The nodes of `trace` and who waits for whom, in at most `most_boxes` boxes (1 or more). Device
// work belongs to its launcher's nesting. Of kDepth and kPath the one with more boxes is taken,
// each with the greatest depth; kinds are the last resort, however few boxes are wanted. O(nodes x
// depths + edges log edges).
GraphView ViewGraph(const Trace& trace, size_t most_boxes);

}  // namespace etude
