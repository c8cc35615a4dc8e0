#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <ATen/core/Tensor.h>

#include "src/suite/results/hyperparameters.h"

namespace etude::suite {

// Operators compute in `precision` on `device` while this lives.
class PrecisionGuard {
 public:
  PrecisionGuard(Precision precision, const at::Device& device);
  ~PrecisionGuard();
  PrecisionGuard(const PrecisionGuard&) = delete;
  PrecisionGuard& operator=(const PrecisionGuard&) = delete;

 private:
  std::optional<at::DeviceType> device_;  // none: nothing was changed
};

// The factor by which the loss is multiplied so that small gradients do not underflow in half
// precision, and the gradients divided. Either fixed, or halved after a step whose gradients
// overflowed, which is skipped, and doubled after 2,000 steps in a row that did not.
class LossScale {
 public:
  // `fixed`: that factor; else dynamic from 65,536 for kFp16, and none (1) for others.
  LossScale(Precision precision, std::optional<double> fixed);

  // Whether there is one, be it 1 for now.
  bool used() const { return used_; }
  double factor() const { return factor_; }
  int64_t skipped() const { return skipped_; }
  // Whether a step with gradients of this norm counts; moves the factor.
  bool Accept(double norm);

  int64_t good_steps() const { return good_steps_; }
  void Restore(double factor, int64_t good_steps, int64_t skipped);

 private:
  bool dynamic_;
  bool used_;
  double factor_;
  int64_t good_steps_ = 0;
  int64_t skipped_ = 0;
};

// Of the values of all gradients together, how many are not 0, and how many of these would be in
// float16 without a factor: at most half its smallest number, 2^-24. Infinities and NaN are none.
// `factor`: by which the gradients have been multiplied.
struct Underflow {
  int64_t values = 0;
  int64_t lost = 0;
};
Underflow CountUnderflow(std::span<const at::Tensor> parameters, double factor);

}  // namespace etude::suite
