#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/data_parallel.h"
#include "src/suite/nn/optimizer.h"
#include "src/suite/precision.h"
#include "src/suite/sample_order.h"
#include "src/suite/sparse_weights.h"
#include "src/suite/sparse_work.h"
#include "src/suite/task.h"

namespace etude::suite {

// Trains a task step by step, with the same loop for all tasks. Steps depend on seed and number
// only, so that a run resumed from a checkpoint continues as if uninterrupted. PyTorch's exceptions
// become kInternal with their first line. Not thread-safe.
class Trainer {
 public:
  struct Options {
    Hyperparameters hyperparameters;  // the task's, with the user's overrides
    uint64_t seed = 0;
    Precision precision = Precision::kFp32;
    std::optional<double> loss_scale;  // fixed; otherwise as in LossScale
    std::optional<SparseOptions> sparse;
    bool frozen = false;            // weights do not change: a test of the target
    DataParallel* ranks = nullptr;  // null: a single process
  };

  // Makes a trainer. kUsage for invalid hyperparameters: a batch that is larger than the data or
  // cannot be divided among ranks.
  static Result<std::unique_ptr<Trainer>> Make(Task& task, const Options& options);

  // Runs the next step. Returns its loss: the mean over its updates, for this rank's share.
  Result<double> Step();
  // Runs the next step, and with masks counts its theoretical work for Figures.
  Result<double> StepWithWork(const RunContext& context);
  // Returns the current quality; with several ranks, the first one's.
  Result<double> Evaluate();
  Result<double> Baseline();
  Result<std::vector<Figure>> Figures();

  int64_t steps_done() const { return step_; }
  int64_t steps_per_epoch() const { return order_.steps_per_epoch(); }
  const Hyperparameters& hyperparameters() const { return options_.hyperparameters; }
  const LossScale& loss_scale() const { return scale_; }
  // Checks that all ranks have bitwise equal parameters; otherwise kInternal. Collective; call once
  // only.
  Status CompareRanks();
  // Counts lost values in the gradients of the last step.
  Result<Underflow> CountLost();

  // Save stores all state of the next step, and `facts`; Load restores it.
  Status Save(const std::string& path, std::map<std::string, std::string> facts);
  Result<std::map<std::string, std::string>> Load(const std::string& path,
                                                  const RunContext& context);

 private:
  Trainer(Task& task, const Options& options);
  Result<double> RunStep();
  Result<double> RunUpdate(const Batch& batch, double share);
  // Returns whether no earlier update of a step has the same group.
  bool IsFirstOfGroup(int64_t update) const;
  double RateFactor() const;
  using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;
  Result<NamedTensors> CollectState();
  NamedTensors State();

  Task* task_;
  Options options_;
  SampleOrder order_;
  std::vector<Optimizer> optimizers_;  // by group
  LossScale scale_;
  std::optional<SparseWeights> sparse_;
  std::optional<SparseWork> work_;  // of a forward pass; nullopt: not counted
  int64_t step_ = 0;
};

}  // namespace etude::suite
