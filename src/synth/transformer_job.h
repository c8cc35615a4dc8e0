#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/synth/transformer_program.h"
#include "src/trace/job.h"
#include "src/trace/trace.h"

namespace etude {

// A training step of a transformer on many ranks. All ranks of a stage have one program. Immutable;
// const methods may be called from several threads.
//
// Rank = tensor + T · (context + C · (expert + E · (data + D · stage))), as Megatron-LM places
// them; D are the replicas of an expert.
class TransformerJob {
 public:
  // kBadInput as CheckTransformerPlan.
  static Result<TransformerJob> Make(const TransformerModel& model, const TransformerPlan& plan);

  int64_t ranks() const { return plan_.ranks(); }
  const std::vector<StageWork>& program(int64_t stage) const {
    return programs_[static_cast<size_t>(stage)];
  }
  // Members of all groups that communicate, by number: process groups are named by these.
  std::map<int64_t, std::vector<int64_t>> Groups() const;
  // The Chakra trace of a rank. Durations are unknown; operations and bytes of computations are
  // 'num_ops' and 'tensor_size'.
  Result<Trace> TraceOf(int64_t rank) const;
  // All ranks: a class for each stage. TraceOfRank gives the same traces of it.
  Result<Job> AsJob() const;

 private:
  // Axes by which ranks are placed, and how many there are along each.
  static constexpr size_t kAxes = 5;
  struct Axis {
    int64_t size = 1;
    int64_t stride = 1;
  };

  TransformerJob(const TransformerModel& model, const TransformerPlan& plan);

  static bool Spans(ParallelGroup group, size_t axis);
  int64_t Coordinate(int64_t rank, size_t axis) const {
    return rank / axes_[axis].stride % axes_[axis].size;
  }
  int64_t GroupNumber(ParallelGroup group, int64_t rank) const;
  std::vector<int64_t> Members(ParallelGroup group, int64_t rank) const;
  // Whether any program communicates in such groups.
  bool IsUsed(ParallelGroup group) const { return first_numbers_[static_cast<size_t>(group)] != 0; }

  // A program as a trace; `fill` says what is left of its communications' facts.
  template <typename Fill>
  Result<Trace> Build(int64_t stage, std::optional<int64_t> rank, Fill fill) const;
  int64_t PartnerStage(int64_t stage, const StageWork& work) const {
    const int64_t stages = plan_.pipeline.stages;
    return (stage + work.partner + stages) % stages;
  }
  Result<Mesh> MeshOf() const;
  Result<GroupKind> KindOf(ParallelGroup group) const;
  Result<RankClass> ClassOf(int64_t stage, const std::vector<size_t>& kinds) const;
  std::vector<CommEvent> Events(const std::vector<size_t>& kinds) const;

  TransformerPlan plan_;
  Axis axes_[kAxes];
  std::vector<std::vector<StageWork>> programs_;     // by stage
  int64_t first_numbers_[kParallelGroupCount] = {};  // 0: the groups are not used
};

}  // namespace etude
