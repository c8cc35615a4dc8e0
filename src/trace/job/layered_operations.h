#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/container/csr.h"
#include "src/trace/job/operation_graph.h"

namespace etude {

// Operations in layers: each depends only on operations of earlier layers, and on at least one of
// the layer directly before. The order is canonical: equal graphs have equal forms, whatever the
// order of their programs (docs/models/job.md).
struct LayeredForm {
  // First position of each layer, then the number of operations.
  std::vector<uint32_t> begins = {0};
  std::vector<uint32_t> types;  // by position
  // By position: positions of the predecessors, the latest first, so that the first one is in the
  // layer directly before; outside edges last.
  Csr<OperationEdge> edges;

  size_t layer_count() const { return begins.size() - 1; }
  LayerShape shape() const;
  friend bool operator==(const LayeredForm&, const LayeredForm&) = default;
};

// Canonical form, and the program order that it was made of.
struct LayeredOperations {
  LayeredForm form;
  std::vector<uint32_t> order;       // by position: index of the operation in the program
  std::vector<uint32_t> edge_order;  // by edge of the form: index among the edges of its operation
};

// Returns nullopt if the graph has a cycle. O((operations + edges) · log).
std::optional<LayeredOperations> LayerOperations(const OperationGraph& graph);

// Returns the graph that `layered` was made of.
OperationGraph InProgramOrder(const LayeredOperations& layered);

}  // namespace etude
