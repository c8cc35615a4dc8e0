#include "src/analysis/view/motif_tree.h"

#include <algorithm>
#include <functional>
#include <span>

#include "src/trace/job/packed_trace.h"

namespace etude {
namespace {

// A part of a program, repeated in a row.
struct PartRun {
  uint32_t part = 0;
  uint64_t times = 1;
};

class MotifTreeMaker {
 public:
  MotifTreeMaker(const Trace& trace, const MotifProgram& program, const MotifTreeOptions& options)
      : trace_(trace),
        program_(program),
        options_(options),
        types_(FindTypes(trace)),
        nodes_(program.Lengths()) {
    // Motifs consist of earlier ones.
    for (const std::vector<uint32_t>& motif : program.motifs) runs_.push_back(RunsOf(motif));
    const std::vector<std::vector<size_t>> places = program.Places();
    for (size_t i = 0; i < places.size(); ++i) {
      const OperationGraph first = GraphAt(places[i].front(), nodes_[i]);
      same_everywhere_.push_back(std::ranges::all_of(
          places[i], [&](size_t place) { return GraphAt(place, nodes_[i]) == first; }));
    }
  }

  void Fill(MotifTree& tree) {
    tree.same_everywhere = static_cast<size_t>(std::ranges::count(same_everywhere_, true));
    tree.shape = FindShape(GraphAt(0, trace_.node_count()));
    Add(RunsOf(program_.parts), 0, 0);
    tree.rows = std::move(rows_);
  }

 private:
  uint64_t NodesOf(uint32_t part) const {
    return part < program_.tokens ? 1 : nodes_[part - program_.tokens];
  }

  OperationGraph GraphAt(size_t first, size_t count) const {
    return GraphOf(trace_, types_, Stretch(first, count));
  }

  // A motif that repeats one part counts as that many of it.
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

  // Adds the rows of `runs`, the first of which begins at node `at`.
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
                         .last = NodeId::FromIndex(at + nodes - 1),
                         .layered = LayerOperations(GraphAt(at, nodes))});
        if (run.part >= program_.tokens) {
          const uint32_t motif = run.part - program_.tokens;
          rows_.back().same_everywhere = same_everywhere_[motif];
          if (depth + 1 < options_.depth) Add(runs_[motif], depth + 1, at);
        }
      }
      at += weight(run);
    }
  }

  const Trace& trace_;
  const MotifProgram& program_;
  const MotifTreeOptions& options_;
  OperationTypes types_;
  std::vector<uint64_t> nodes_;             // by motif
  std::vector<std::vector<PartRun>> runs_;  // by motif
  std::vector<bool> same_everywhere_;       // by motif
  std::vector<MotifRow> rows_;
};

}  // namespace

Result<MotifTree> MakeMotifTree(const Trace& trace, const MotifTreeOptions& options,
                                const Limits& limits) {
  ETUDE_ASSIGN_OR_RETURN(const PackedTrace packed, PackedTrace::Pack(trace, limits));
  MotifTree tree{.node_kinds = packed.token_count(),
                 .motifs = packed.program().motifs.size(),
                 .parts = packed.program().size()};
  MotifTreeMaker(trace, packed.program(), options).Fill(tree);
  return tree;
}

}  // namespace etude
