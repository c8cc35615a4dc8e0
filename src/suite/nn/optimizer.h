#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/weights.h"
#include "src/suite/results/hyperparameters.h"

namespace etude::suite {

// Updates the parameters of one group. Refers to the weights, which must not grow afterwards.
// Parameters without gradient are unchanged. Not thread-safe.
class Optimizer {
 public:
  Optimizer(const Weights& weights, int group, const OptimizerOptions& options);

  // Updates the parameters by their gradients, at `rate_factor` times the options' rate.
  void Step(double rate_factor);
  // Sets the state of `parameter` to 0 where `where` is not 0.
  void Forget(const at::Tensor& parameter, const at::Tensor& where);
  // Clears the gradients.
  void Clear();
  // Returns the Euclidean norm of all gradients together, and scales them to at most `largest` if
  // that is positive.
  double ClipNorm(double largest);
  // Returns the factor applied to the gradients since they were cleared.
  double clip_factor() const { return clip_factor_; }

  const std::vector<at::Tensor>& parameters() const { return parameters_; }

  // Returns the state for a checkpoint by name, making missing tensors. The tensors are live.
  std::vector<std::pair<std::string, at::Tensor>> State();

 private:
  struct Moments {
    at::Tensor first;   // momentum, or the mean of gradients
    at::Tensor second;  // mean of squared gradients
  };
  void Move(const at::Tensor& parameter, Moments& moments, int64_t step, double rate);
  void Make(const at::Tensor& parameter, Moments& moments);

  OptimizerOptions options_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_;
  std::vector<Moments> moments_;  // by parameter
  at::Tensor steps_;              // int64 [parameters]: number of updates
  double clip_factor_ = 1;
};

}  // namespace etude::suite
