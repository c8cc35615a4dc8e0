#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/weights.h"
#include "src/suite/results/hyperparameters.h"

namespace etude::suite {

// Moves the parameters of one group. Refers to the weights, which must not grow any more. A
// parameter without a gradient stays where it is. Not thread-safe.
class Optimizer {
 public:
  Optimizer(const Weights& weights, int group, const OptimizerOptions& options);

  // Moves the parameters by their gradients, at `rate_factor` times the options' rate.
  void Step(double rate_factor);
  // Forgets the gradients.
  void Clear();
  // Of all gradients together, the Euclidean norm; then scaled to at most `largest` if that is
  // above 0.
  double ClipNorm(double largest);
  // By which it has multiplied the gradients since they were cleared.
  double clip_factor() const { return clip_factor_; }

  const std::vector<at::Tensor>& parameters() const { return parameters_; }

  // What a checkpoint must have to go on, by name; changes in place. Tensors that do not exist yet
  // are made.
  std::vector<std::pair<std::string, at::Tensor>> State();

 private:
  struct Moments {
    at::Tensor first;   // momentum, or the mean of gradients
    at::Tensor second;  // the mean of their squares
  };
  void Move(const at::Tensor& parameter, Moments& moments, int64_t step, double rate);
  void Make(const at::Tensor& parameter, Moments& moments);

  OptimizerOptions options_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_;
  std::vector<Moments> moments_;  // parallel
  at::Tensor steps_;              // int64 [parameters]: how often each has moved
  double clip_factor_ = 1;
};

}  // namespace etude::suite
