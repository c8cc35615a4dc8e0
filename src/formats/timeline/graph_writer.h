#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/formats/io/byte_sink.h"
#include "src/trace/words/enums.h"

namespace etude {

// A graph to be drawn: boxes, each for one or several nodes of a trace, and edges between them.
struct DrawnGraph {
  struct Box {
    std::string label;
    NodeKind kind = NodeKind::kUnknown;  // of the nodes, if all are of one kind
    Place place = Place::kUnknown;       // of the nodes, if all are at one place
    uint64_t nodes = 1;                  // number of represented nodes
    std::optional<uint64_t> id;          // source id of a single node
    std::optional<Nanos> time;           // of the nodes without their callees, as far as known
  };
  enum class EdgeKind : uint8_t { kCall, kControl, kData, kSync };
  struct Edge {
    uint32_t from = 0;  // index into `boxes`: the predecessor
    uint32_t to = 0;
    EdgeKind kind = EdgeKind::kCall;
    uint64_t count = 1;  // number of represented edges of the trace
  };

  std::string title;
  std::vector<Box> boxes;
  std::vector<Edge> edges;
};
std::string_view Name(DrawnGraph::EdgeKind kind);

// Writes `graph` in Graphviz's language. Labels may contain any text. Deterministic. Returns errors
// of `sink`.
Status WriteDot(const DrawnGraph& graph, const ByteSink& sink);
// Writes `graph` as GraphML, XML for yEd, Gephi and networkx.
Status WriteGraphml(const DrawnGraph& graph, const ByteSink& sink);

}  // namespace etude
