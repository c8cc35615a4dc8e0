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

// What of a batch is asked for.
struct Batch {
  int64_t step = 0;
  int64_t update = 0;                // of the step: 0 up to the task's updates_per_step
  std::span<const int64_t> samples;  // numbers of training samples, this rank's share
};

// What a task is made for.
struct TaskOptions {
  Scale scale = Scale::kSmoke;
  uint64_t seed = 0;  // of the weights; generated data have a seed of their own
  at::Device device = at::kCPU;
  std::string data;  // folder with data sets (docs/suite.md)
  RunContext context;
  std::optional<int64_t> table_rows;  // most rows of an embedding table; advertising only
  bool shuffled_labels = false;       // a test of the target: there is nothing to be learned
};

// A training task at one scale: its model, data, loss and measure of quality. Steps, optimizers,
// precision, ranks, clocks and files are the Trainer's, the same for all tasks. Everything random
// comes from PyTorch's generators, which the trainer seeds for each step, so that a step depends on
// its number alone. Not thread-safe. What PyTorch throws passes through; the trainer catches it.
class Task {
 public:
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  Weights& weights() { return weights_; }
  const Hyperparameters& hyperparameters() const { return hyperparameters_; }

  // Which one, of a task that may learn from several data sets; else "".
  virtual std::string data_set() const { return {}; }
  // Training samples; batches name them by number.
  virtual int64_t samples() const = 0;

  // A step is so many updates, each of one group of parameters by its optimizer: several for what
  // plays two models against each other, or first searches and then learns.
  virtual int64_t updates_per_step() const { return 1; }
  virtual int GroupOf(int64_t /*update*/) const { return 0; }
  // The mean loss over the batch's samples: a scalar, in training mode.
  virtual Result<at::Tensor> Loss(const Batch& batch) = 0;
  // After an update's parameters have moved: clipping, moving averages.
  virtual void Updated(const Batch& /*batch*/) {}

  // The quality on the data held out, by the task's metric: no gradients, not in training mode.
  virtual Result<double> Evaluate() = 0;
  // Other figures of the data held out, at the end of a run; none for most tasks.
  virtual Result<std::vector<Figure>> Figures() { return std::vector<Figure>(); }
  // The quality of answering without having learned: always the most frequent class, the mean.
  virtual Result<double> Baseline() = 0;

 protected:
  Task(const at::Device& device, Hyperparameters hyperparameters)
      : weights_(device), hyperparameters_(std::move(hyperparameters)) {}
  Scope root(int group = 0) { return Scope(weights_, {}, group); }
  bool is_training() const { return weights_.training(); }

 private:
  Weights weights_;
  Hyperparameters hyperparameters_;
};

}  // namespace etude::suite
