#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/container/csr.h"
#include "src/trace/job/operation_graph.h"

namespace etude {

// Operations in layers: each comes after operations of earlier layers only, and after one of the
// layer directly before. In an order that follows from the graph, whatever the order of its
// program, so that equal graphs have equal forms: docs/models/job.md.
struct LayeredForm {
  // The position at which each layer begins; behind the last one, the number of operations.
  std::vector<uint32_t> begins = {0};
  std::vector<uint32_t> types;  // by position
  // By position: the positions that the operation comes after, the latest first, so that the first
  // one is in the layer directly before; those outside last.
  Csr<OperationEdge> edges;

  size_t layer_count() const { return begins.size() - 1; }
  LayerShape shape() const;
  friend bool operator==(const LayeredForm&, const LayeredForm&) = default;
};

// A form, and the order of the program that it was made of.
struct LayeredOperations {
  LayeredForm form;
  std::vector<uint32_t> order;       // by position: which operation of the program
  std::vector<uint32_t> edge_order;  // by edge of the form: which one of its operation's
};

// nullopt: a cycle, which has no layers. O((operations + edges) · log).
std::optional<LayeredOperations> LayerOperations(const OperationGraph& graph);

// The graph that they were made of.
OperationGraph InProgramOrder(const LayeredOperations& layered);

}  // namespace etude
