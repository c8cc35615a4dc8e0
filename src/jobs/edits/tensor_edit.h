#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/jobs/edits/applied_edit.h"
#include "src/trace/trace.h"
#include "src/transform/dimensions/tensor_parallel.h"
#include "src/transform/runnable/runnable_rank.h"

namespace etude {

// Turns a step of one rank into one of several tensor-parallel ranks. Not thread-safe.
class TensorEdit {
 public:
  TensorEdit() = default;  // without an edit
  // kUsage for a wrong number.
  static Result<TensorEdit> Make(std::optional<int64_t> ranks);

  explicit operator bool() const { return ranks_.has_value(); }
  int64_t ranks() const { return ranks_.value_or(1); }
  // Returns whether there are several ranks. A single one has all weights.
  bool divides() const { return ranks() > 1; }

  // Finds the recorded step with the part of each dimension that one rank has. kBadInput, with
  // the reason, for jobs that do not support this.
  Status Divide(const std::vector<Trace>& traces, const Limits& limits);
  // Returns the divided step, and which of its nodes have a time by work. Once.
  Trace TakeTrace() { return std::move(step_.trace); }
  const std::vector<bool>& is_retimed() const { return step_.is_retimed; }
  // Repeats the communication of layers of the divided step that `edited` repeats: its nodes have
  // `origins` in the divided one.
  void FollowLayers(const Trace& edited, std::span<const NodeId> origins);
  // Adds the communication to the divided step, which may have nodes of other edits after its own.
  Result<Trace> AddCommunication(const Trace& divided, const Limits& limits);
  // Returns the ranks of `replicas` data-parallel groups that all run the program of `rank`:
  // rank = tensor-parallel rank + tensor-parallel ranks · replica, as in generated jobs.
  std::vector<RunnableRank> Replicate(const RunnableRank& rank, int64_t replicas) const;

  // The edit, without times of tables. After AddCommunication.
  AppliedEdit& applied() { return applied_; }
  const AppliedEdit& applied() const { return applied_; }

 private:
  void Describe();

  std::optional<int64_t> ranks_;
  TensorParallelStep step_;  // without its trace
  AppliedEdit applied_;
};

}  // namespace etude
