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
#include "src/suite/task.h"

namespace etude::suite {

// Trains a task, step by step: the same loop for all. Steps depend on seed and number only, so that
// a run that goes on from a checkpoint goes the way it would have gone. Errors of PyTorch become
// kInternal with their first line. Not thread-safe.
class Trainer {
 public:
  struct Options {
    Hyperparameters hyperparameters;  // the task's, or with the user's values
    uint64_t seed = 0;
    Precision precision = Precision::kFp32;
    std::optional<double> loss_scale;  // fixed; else as LossScale has it
    bool frozen = false;               // the weights stay: a test of the target
    DataParallel* ranks = nullptr;     // null: this process alone
  };

  // kUsage if the hyperparameters cannot be: a batch larger than the data, or that ranks cannot
  // share.
  static Result<std::unique_ptr<Trainer>> Make(Task& task, const Options& options);

  // Runs the next step; its loss, the mean over its updates, of this rank's share.
  Result<double> Step();
  // The quality now; of several ranks the first one's.
  Result<double> Evaluate();
  Result<double> Baseline();
  Result<std::vector<Figure>> Figures();

  int64_t steps_done() const { return step_; }
  int64_t steps_per_epoch() const { return order_.steps_per_epoch(); }
  const Hyperparameters& hyperparameters() const { return options_.hyperparameters; }
  const LossScale& loss_scale() const { return scale_; }
  // kInternal if not all ranks have the same parameters, bit by bit. All ranks call it, once.
  Status CompareRanks();
  // Of the gradients of the last step.
  Result<Underflow> CountLost();

  // Keeps all that the next step depends on, and `facts`; and goes on from there.
  Status Save(const std::string& path, std::map<std::string, std::string> facts);
  Result<std::map<std::string, std::string>> Load(const std::string& path,
                                                  const RunContext& context);

 private:
  Trainer(Task& task, const Options& options);
  Result<double> RunStep();
  Result<double> RunUpdate(const Batch& batch, double share);
  double RateFactor() const;
  using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;
  Result<NamedTensors> CollectState();
  NamedTensors State();

  Task* task_;
  Options options_;
  SampleOrder order_;
  std::vector<Optimizer> optimizers_;  // by group
  LossScale scale_;
  int64_t step_ = 0;
};

}  // namespace etude::suite
