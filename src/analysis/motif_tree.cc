#include "src/analysis/motif_tree.h"

#include <algorithm>
#include <functional>
#include <span>

#include "src/trace/packed_trace.h"

namespace etude {
namespace {

// A part of a program, so many times in a row.
struct PartRun {
  uint32_t part = 0;
  uint64_t times = 1;
};

class MotifTreeMaker {
 public:
  MotifTreeMaker(const MotifProgram& program, const MotifTreeOptions& options)
      : program_(program), options_(options) {
    // Motifs are made of those before them.
    for (const std::vector<uint32_t>& motif : program.motifs) {
      uint64_t nodes = 0;
      for (const uint32_t part : motif) nodes += NodesOf(part);
      nodes_.push_back(nodes);
      runs_.push_back(RunsOf(motif));
    }
  }

  std::vector<MotifRow> Run() {
    Add(RunsOf(program_.parts), 0, 0);
    return std::move(rows_);
  }

 private:
  uint64_t NodesOf(uint32_t part) const {
    return part < program_.tokens ? 1 : nodes_[part - program_.tokens];
  }

  // A motif that is one part again and again stands for so many of it.
  PartRun RunOf(uint32_t part) const {
    if (part < program_.tokens) return {.part = part};
    const std::vector<PartRun>& runs = runs_[part - program_.tokens];
    return runs.size() == 1 ? runs.front() : PartRun{.part = part};
  }

  std::vector<PartRun> RunsOf(std::span<const uint32_t> parts) const {
    std::vector<PartRun> runs;
    for (const uint32_t part : parts) {
      const PartRun run = RunOf(part);
      if (!runs.empty() && runs.back().part == run.part) {
        runs.back().times += run.times;
      } else {
        runs.push_back(run);
      }
    }
    return runs;
  }

  // Rows of `runs`, of which the first begins at node `at`.
  void Add(const std::vector<PartRun>& runs, size_t depth, uint64_t at) {
    const auto weight = [&](const PartRun& run) { return run.times * NodesOf(run.part); };
    std::vector<uint64_t> weights;
    for (const PartRun& run : runs) weights.push_back(weight(run));
    std::ranges::sort(weights, std::greater<>());
    const size_t shown = std::min(options_.rows, weights.size());
    const uint64_t least = shown == 0 ? 0 : std::max<uint64_t>(2, weights[shown - 1]);
    size_t rows = 0;
    for (const PartRun& run : runs) {
      const uint64_t nodes = NodesOf(run.part);
      if (weight(run) >= least && rows < shown) {
        ++rows;
        rows_.push_back({.depth = depth,
                         .times = run.times,
                         .nodes = nodes,
                         .first = NodeId::FromIndex(at),
                         .last = NodeId::FromIndex(at + nodes - 1)});
        if (run.part >= program_.tokens && depth + 1 < options_.depth) {
          Add(runs_[run.part - program_.tokens], depth + 1, at);
        }
      }
      at += weight(run);
    }
  }

  const MotifProgram& program_;
  const MotifTreeOptions& options_;
  std::vector<uint64_t> nodes_;             // by motif
  std::vector<std::vector<PartRun>> runs_;  // likewise
  std::vector<MotifRow> rows_;
};

}  // namespace

Result<MotifTree> MakeMotifTree(const Trace& trace, const MotifTreeOptions& options,
                                const Limits& limits) {
  ETUDE_ASSIGN_OR_RETURN(const PackedTrace packed, PackedTrace::Pack(trace, limits));
  MotifTree tree{.node_kinds = packed.token_count(),
                 .motifs = packed.program().motifs.size(),
                 .parts = packed.program().size(),
                 .rows = {}};
  tree.rows = MotifTreeMaker(packed.program(), options).Run();
  return tree;
}

}  // namespace etude
