#include "src/suite/nn/optimizer.h"

#include <cmath>

#include <ATen/core/grad_mode.h>

#include "src/suite/nn/functional.h"

namespace etude::suite {

Optimizer::Optimizer(const Weights& weights, int group, const OptimizerOptions& options)
    : options_(options) {
  for (const Weights::Entry& entry : weights.entries()) {
    if (!entry.is_parameter || entry.group != group) continue;
    names_.push_back(entry.name);
    parameters_.push_back(entry.value);
  }
  moments_.resize(parameters_.size());
  steps_ = Zeros({static_cast<int64_t>(parameters_.size())}, at::kLong);
}

void Optimizer::Step(double rate_factor) {
  const at::NoGradGuard no_gradients;
  auto* steps = steps_.mutable_data_ptr<int64_t>();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].grad().defined()) continue;
    Make(parameters_[i], moments_[i]);
    Move(parameters_[i], moments_[i], ++steps[i], options_.rate * rate_factor);
  }
}

void Optimizer::Forget(const at::Tensor& parameter, const at::Tensor& where) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].is_same(parameter)) continue;
    for (at::Tensor* moment : {&moments_[i].first, &moments_[i].second}) {
      if (moment->defined()) moment->masked_fill_(where.ne(0), 0);
    }
  }
}

void Optimizer::Clear() {
  for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
  clip_factor_ = 1;
}

double Optimizer::ClipNorm(double largest) {
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> norms;
  for (const at::Tensor& parameter : parameters_) {
    if (parameter.grad().defined()) norms.push_back(parameter.grad().norm());
  }
  if (norms.empty()) return 0;
  const double norm = Stack(norms, 0).norm().item<double>();
  if (largest > 0 && norm > largest) {
    for (const at::Tensor& parameter : parameters_) {
      if (parameter.grad().defined()) parameter.grad().mul_(largest / (norm + 1e-6));
    }
    clip_factor_ = largest / (norm + 1e-6);
  }
  return norm;
}

std::vector<std::pair<std::string, at::Tensor>> Optimizer::State() {
  std::vector<std::pair<std::string, at::Tensor>> state = {{"steps", steps_}};
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Make(parameters_[i], moments_[i]);
    if (moments_[i].first.defined()) state.emplace_back(names_[i] + ".first", moments_[i].first);
    if (moments_[i].second.defined()) state.emplace_back(names_[i] + ".second", moments_[i].second);
  }
  return state;
}

void Optimizer::Make(const at::Tensor& parameter, Moments& moments) {
  using Kind = OptimizerOptions::Kind;
  const bool adam = options_.kind == Kind::kAdam || options_.kind == Kind::kAdamW;
  const at::NoGradGuard no_gradients;
  if (!moments.first.defined() && (adam || options_.momentum != 0)) {
    moments.first = parameter.new_zeros(parameter.sizes());
  }
  if (!moments.second.defined() && options_.kind != Kind::kSgd) {
    moments.second = parameter.new_zeros(parameter.sizes());
  }
}

void Optimizer::Move(const at::Tensor& parameter, Moments& moments, int64_t step, double rate) {
  using Kind = OptimizerOptions::Kind;
  at::Tensor gradient = parameter.grad();
  if (options_.weight_decay != 0) {
    if (options_.kind == Kind::kAdamW) {
      parameter.mul_(1 - rate * options_.weight_decay);
    } else {
      gradient = gradient.add(parameter, options_.weight_decay);
    }
  }
  switch (options_.kind) {
    case Kind::kSgd:
      if (options_.momentum != 0) {
        moments.first.mul_(options_.momentum).add_(gradient);
        gradient =
            options_.nesterov ? gradient.add(moments.first, options_.momentum) : moments.first;
      }
      parameter.add_(gradient, -rate);
      return;
    case Kind::kAdam:
    case Kind::kAdamW: {
      moments.first.lerp_(gradient, 1 - options_.beta1);
      moments.second.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
      const double first_share = 1 - std::pow(options_.beta1, static_cast<double>(step));
      const double second_share = 1 - std::pow(options_.beta2, static_cast<double>(step));
      const at::Tensor size =
          (moments.second.sqrt() / std::sqrt(second_share)).add_(options_.epsilon);
      parameter.addcdiv_(moments.first, size, -rate / first_share);
      return;
    }
    case Kind::kRmsprop: {
      moments.second.mul_(options_.smoothing).addcmul_(gradient, gradient, 1 - options_.smoothing);
      const at::Tensor size = moments.second.sqrt().add_(options_.epsilon);
      if (options_.momentum != 0) {
        moments.first.mul_(options_.momentum).addcdiv_(gradient, size);
        parameter.add_(moments.first, -rate);
      } else {
        parameter.addcdiv_(gradient, size, -rate);
      }
      return;
    }
  }
}

}  // namespace etude::suite
