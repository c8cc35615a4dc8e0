#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/nn/weights.h"
#include "src/suite/results/hyperparameters.h"
#include "src/suite/results/run_record.h"

namespace etude::suite {

// Request for the loss of a batch.
struct Batch {
  int64_t step = 0;
  int64_t update = 0;                // within the step: below the task's updates_per_step
  std::span<const int64_t> samples;  // training sample numbers, this rank's share
};

// Construction options of a task.
struct TaskOptions {
  Scale scale = Scale::kSmoke;
  uint64_t seed = 0;  // for the weights; generated data have separate seeds
  at::Device device = at::kCPU;
  std::string data;  // folder with data sets (docs/suite.md)
  RunContext context;
  std::optional<int64_t> table_rows;  // maximum of rows of an embedding table; advertising only
  bool caravan = false;               // advertising only: real policies instead of generated clicks
  bool shuffled_labels = false;       // tests the target: there is nothing to learn
};

// A training task at one scale: model, data, loss and quality metric. Steps, optimizers, precision,
// ranks, clocks and files belong to the Trainer. All random numbers come from PyTorch's generators,
// which the trainer seeds for each step, so that a step depends on its number only. Not
// thread-safe. PyTorch's exceptions pass through; the trainer catches them.
class Task {
 public:
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  Weights& weights() { return weights_; }
  const Hyperparameters& hyperparameters() const { return hyperparameters_; }

  // Returns the data set of a task that supports several; otherwise "".
  virtual std::string data_set() const { return {}; }
  // Returns whether the target of the scale is for this data set.
  virtual bool has_target() const { return true; }
  // Returns the number of training samples; batches refer to them by index.
  virtual int64_t samples() const = 0;

  // Number of updates per step, each of one parameter group by its optimizer. Several for
  // adversarial models, or for search before learning.
  virtual int64_t updates_per_step() const { return 1; }
  virtual int GroupOf(int64_t /*update*/) const { return 0; }
  // Returns the mean loss over the batch's samples, a scalar, in training mode.
  virtual Result<at::Tensor> Loss(const Batch& batch) = 0;
  // Called after an update of parameters, for clipping and moving averages.
  virtual void Updated(const Batch& /*batch*/) {}

  // Returns the quality on the test data by the task's metric, without gradients, outside of
  // training mode.
  virtual Result<double> Evaluate() = 0;
  // Returns additional figures of the test data at the end of a run; none for most tasks.
  virtual Result<std::vector<Figure>> Figures() { return std::vector<Figure>(); }
  // Returns the quality without learning: always the most frequent class, the mean.
  virtual Result<double> Baseline() = 0;

 protected:
  Task(const at::Device& device, Hyperparameters hyperparameters)
      : weights_(device), hyperparameters_(std::move(hyperparameters)) {}
  Scope root(int group = 0) { return Scope(weights_, {}, group); }
  bool is_training() const { return weights_.training(); }
  // Returns `tensor` on the model's device.
  at::Tensor There(const at::Tensor& tensor) const { return tensor.to(weights_.device()); }

 private:
  Weights weights_;
  Hyperparameters hyperparameters_;
};

}  // namespace etude::suite
