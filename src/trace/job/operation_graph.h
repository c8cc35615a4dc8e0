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

// What is alike in operations, whatever the trace: sorts the same way in every trace.
struct OperationType {
  NodeKind kind = NodeKind::kUnknown;
  Place place = Place::kUnknown;
  CollectiveType collective = CollectiveType::kUnknown;
  std::string name;  // '#' for each number in it

  friend auto operator<=>(const OperationType&, const OperationType&) = default;
};

// The types in a trace, ascending, and the one of each node, as an index of `types`.
struct OperationTypes {
  std::vector<OperationType> types;
  std::vector<uint32_t> of;
};
OperationTypes FindTypes(const Trace& trace);

// Why an operation comes after another: it is called by it, or depends on it (DepKind).
enum class EdgeKind : uint8_t { kCaller, kControl, kData, kSync };

struct OperationEdge {
  static constexpr uint32_t kOutside = UINT32_MAX;  // none of these operations

  uint32_t source = kOutside;
  EdgeKind kind = EdgeKind::kCaller;

  friend bool operator==(const OperationEdge&, const OperationEdge&) = default;
};

// Some operations in the order of their program, with what they come after: the caller first, then
// dependencies as the trace lists them.
struct OperationGraph {
  std::vector<uint32_t> types;
  Csr<OperationEdge> edges;  // by operation

  friend bool operator==(const OperationGraph&, const OperationGraph&) = default;
};

// The graph of `nodes`, ascending, of a trace with these types. O(edges · log nodes).
OperationGraph GraphOf(const Trace& trace, const OperationTypes& types,
                       std::span<const NodeId> nodes);
// `count` nodes from `first` on.
std::vector<NodeId> Stretch(size_t first, size_t count);

// By operation: its layer, which is the number of edges of the longest path that leads to it.
// nullopt: there is a cycle. Linear.
std::optional<std::vector<uint32_t>> FindLayers(const OperationGraph& graph);

// How deep and how wide a graph is.
struct LayerShape {
  uint64_t layers = 0;
  uint64_t width = 0;  // most operations in a layer

  friend bool operator==(const LayerShape&, const LayerShape&) = default;
};
std::optional<LayerShape> FindShape(const OperationGraph& graph);

}  // namespace etude
