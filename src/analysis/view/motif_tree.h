#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/job/layered_operations.h"
#include "src/trace/trace.h"

namespace etude {

// A run of nodes that occurs `times` times in a row; its parts are the rows below it that are
// deeper.
struct MotifRow {
  size_t depth = 0;
  uint64_t times = 1;
  uint64_t nodes = 0;  // of one time
  NodeId first;        // of the first time
  NodeId last;
  // Of the first time; nullopt: its nodes wait for each other. Operations count from `first`.
  std::optional<LayeredOperations> layered;
  // Whether its nodes depend on each other in the same way wherever the motif is in the trace.
  bool same_everywhere = true;
};

// What repeats in a trace, as the motifs of its PackedTrace have it: what nodes are and how they
// depend on those before them counts, numbers in names do not.
struct MotifTree {
  size_t node_kinds = 0;  // kinds of nodes that are alike
  size_t motifs = 0;
  size_t same_everywhere = 0;       // of the motifs, as rows have it
  size_t parts = 0;                 // of the program: what is left to say of the sequence of nodes
  std::optional<LayerShape> shape;  // of the whole trace; nullopt: it has a cycle
  std::vector<MotifRow> rows;
};

struct MotifTreeOptions {
  size_t depth = 3;  // levels
  size_t rows = 8;   // of one level below one row: those with the most nodes, in order
};

// Errors are those of the limits.
Result<MotifTree> MakeMotifTree(const Trace& trace, const MotifTreeOptions& options = {},
                                const Limits& limits = {});

}  // namespace etude
