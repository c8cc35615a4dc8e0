#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/stragglers/pipeline_stages.h"
#include "src/trace/job/job.h"

namespace etude {

// Names of the computations in a job's programs.
struct WorkNames {
  struct Name {
    std::string text;
    bool is_label = false;  // time of a label or between operators, which ranks need not share
  };
  std::vector<Name> names;
  std::map<const SimProgram*, std::vector<uint32_t>> of_nodes;  // index into `names` by node

  static constexpr uint32_t kNoName = UINT32_MAX;  // of communications
};
WorkNames WorkNamesOf(const Job& job, const SimWorkload& workload);

// Ranks of a pipeline stage with the same program and times.
struct RankUse {
  std::shared_ptr<const SimProgram> program;
  std::span<const uint32_t> names;  // by node
  std::vector<size_t> ranks;
  size_t stage = 0;            // without stages 0
  std::vector<int64_t> own;    // durations by node in ns, with the machine's factor
  std::vector<int64_t> ideal;  // mean over the ranks that do the same
  double like = 1;             // number of ranks that do the same

  // Returns the mean time of the other ranks that do the same; its own without any.
  int64_t OfOthers(size_t node) const;
};

// Nodes of computations by the index of their name.
using NodesByName = std::map<uint32_t, std::vector<size_t>>;
NodesByName NodesOf(const RankUse& use);

// Times of the ranks of a job, and simulations with other ones. Not thread-safe. Refers to the
// arguments of its constructor.
class RankVariants {
 public:
  // Returns the duration of a node of a use, in ns.
  using Duration = std::function<int64_t(const RankUse& use, size_t node)>;

  RankVariants(const SimMachine& machine, const SimWorkload& workload, const WorkNames& names,
               const PipelineStages& stages, const RunContext& context);

  const std::vector<RankUse>& uses() const { return uses_; }
  // Returns the indices of the uses whose ranks do the same: the same operators and communications
  // in the same order, whatever their times.
  const std::vector<std::vector<size_t>>& kinds() const { return kinds_; }
  size_t rank_count() const { return workload_.ranks.size(); }
  const WorkNames& names() const { return names_; }

  // Announces `count` more simulations, for the progress.
  void Expect(size_t count) { all_ += count; }
  // Returns the step in ns in which nodes take `duration`, and those of the given ranks `of_ranks`.
  // kInterrupted if the context is. Errors of Simulate.
  Result<int64_t> StepOf(const Duration& duration, std::span<const size_t> ranks = {},
                         const Duration& of_ranks = {});

 private:
  void FindUses(const std::map<int64_t, double>& stragglers, const PipelineStages& stages);
  RankUse MakeUse(const std::shared_ptr<const SimProgram>& program, double factor) const;
  void FindKinds();
  void FindIdeal(std::span<const size_t> kind);

  SimMachine machine_;
  const SimWorkload& workload_;
  const WorkNames& names_;
  const RunContext& context_;
  RunContext quiet_;
  std::vector<RankUse> uses_;
  std::vector<std::vector<size_t>> kinds_;
  size_t done_ = 0;  // simulations
  size_t all_ = 0;
};

}  // namespace etude
