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

// A run of nodes that occurs `times` times in a row; its parts are the deeper rows after it.
struct MotifRow {
  size_t depth = 0;
  uint64_t times = 1;
  uint64_t nodes = 0;  // per occurrence
  NodeId first;        // of the first occurrence
  NodeId last;
  // Layers of the first occurrence, counted from `first`; nullopt: its nodes form a cycle.
  std::optional<LayeredOperations> layered;
  // True if its nodes depend on each other in the same way in all occurrences of the motif.
  bool same_everywhere = true;
};

// Repetitions in a trace, as motifs of its PackedTrace. Compares nodes and their dependencies on
// earlier nodes, ignoring numbers in names.
struct MotifTree {
  size_t node_kinds = 0;  // number of distinct kinds of nodes
  size_t motifs = 0;
  size_t same_everywhere = 0;       // number of motifs with that property
  size_t parts = 0;                 // of the program: the size of the compressed node sequence
  std::optional<LayerShape> shape;  // of the whole trace; nullopt: it has a cycle
  std::vector<MotifRow> rows;
};

struct MotifTreeOptions {
  size_t depth = 3;  // number of levels
  size_t rows = 8;   // max rows per level and parent: those with the most nodes, in order
};

// Makes the tree. Fails only if a limit is exceeded.
Result<MotifTree> MakeMotifTree(const Trace& trace, const MotifTreeOptions& options = {},
                                const Limits& limits = {});

}  // namespace etude
