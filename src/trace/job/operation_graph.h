#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/container/csr.h"
#include "src/trace/trace.h"

namespace etude {

// Trace-independent properties of operations. Types sort the same way in every trace.
struct OperationType {
  NodeKind kind = NodeKind::kUnknown;
  Place place = Place::kUnknown;
  CollectiveType collective = CollectiveType::kUnknown;
  std::string name;  // '#' replaces each number

  friend auto operator<=>(const OperationType&, const OperationType&) = default;
};

// Types of a trace, ascending, and the index in `types` for each node.
struct OperationTypes {
  std::vector<OperationType> types;
  std::vector<uint32_t> of;
};
OperationTypes FindTypes(const Trace& trace);

// Reason why an operation comes after another: a call or a dependency (DepKind).
enum class EdgeKind : uint8_t { kCaller, kControl, kData, kSync };

struct OperationEdge {
  static constexpr uint32_t kOutside = UINT32_MAX;  // not one of these operations

  uint32_t source = kOutside;
  EdgeKind kind = EdgeKind::kCaller;

  friend bool operator==(const OperationEdge&, const OperationEdge&) = default;
};

// Operations in program order with their predecessors: the caller first, then the dependencies in
// the order of the trace.
struct OperationGraph {
  std::vector<uint32_t> types;
  Csr<OperationEdge> edges;  // by operation

  friend bool operator==(const OperationGraph&, const OperationGraph&) = default;
};

// Returns the graph of `nodes`, which must ascend, of a trace with these types. O(edges · log
// nodes).
OperationGraph GraphOf(const Trace& trace, const OperationTypes& types,
                       std::span<const NodeId> nodes);
// Returns `count` nodes from `first` on.
std::vector<NodeId> Stretch(size_t first, size_t count);

// Returns the layer of each operation: the number of edges on the longest path to it. nullopt if
// there is a cycle. Linear time.
std::optional<std::vector<uint32_t>> FindLayers(const OperationGraph& graph);

// Depth and width of a graph.
struct LayerShape {
  uint64_t layers = 0;
  uint64_t width = 0;  // max operations in a layer

  friend bool operator==(const LayerShape&, const LayerShape&) = default;
};
std::optional<LayerShape> FindShape(const OperationGraph& graph);

}  // namespace etude
