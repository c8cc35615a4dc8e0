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
    NodeKind kind = NodeKind::kUnknown;  // of the nodes, if they are of one kind
    Place place = Place::kUnknown;       // likewise
    uint64_t nodes = 1;                  // that it stands for
    std::optional<uint64_t> id;          // in the file, of a single node
    std::optional<Nanos> time;           // of the nodes without what they call, as far as known
  };
  enum class EdgeKind : uint8_t { kCall, kControl, kData, kSync };
  struct Edge {
    uint32_t from = 0;  // in `boxes`: what comes first
    uint32_t to = 0;
    EdgeKind kind = EdgeKind::kCall;
    uint64_t count = 1;  // of the trace's edges that it stands for
  };

  std::string title;
  std::vector<Box> boxes;
  std::vector<Edge> edges;
};
std::string_view Name(DrawnGraph::EdgeKind kind);

// Writes `graph` in the language of Graphviz. Labels may hold any text. The same graph gives the
// same bytes. Errors are those of `sink`.
Status WriteDot(const DrawnGraph& graph, const ByteSink& sink);
// Likewise as GraphML, XML that yEd, Gephi and networkx read.
Status WriteGraphml(const DrawnGraph& graph, const ByteSink& sink);

}  // namespace etude
