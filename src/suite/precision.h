#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <ATen/core/Tensor.h>

#include "src/suite/results/hyperparameters.h"

namespace etude::suite {

// Makes operators on `device` compute in `precision` during its lifetime.
class PrecisionGuard {
 public:
  PrecisionGuard(Precision precision, const at::Device& device);
  ~PrecisionGuard();
  PrecisionGuard(const PrecisionGuard&) = delete;
  PrecisionGuard& operator=(const PrecisionGuard&) = delete;

 private:
  std::optional<at::DeviceType> device_;  // nullopt: nothing was changed
};

// Factor on the loss that prevents small gradients from underflowing in half precision; gradients
// are divided by it. Either fixed, or dynamic: halved after a step with overflowing gradients,
// which is skipped, and doubled after 2,000 consecutive steps without overflow.
class LossScale {
 public:
  // `fixed`: constant factor; otherwise dynamic from 65,536 for kFp16, and unused (1) for others.
  LossScale(Precision precision, std::optional<double> fixed);

  // Returns whether a factor is in use, even if it is currently 1.
  bool used() const { return used_; }
  double factor() const { return factor_; }
  int64_t skipped() const { return skipped_; }
  // Returns whether a step with this gradient norm is valid, and updates the factor.
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

// Number of non-zero gradient values, and of those that float16 would lose without a factor: at
// most half of its smallest number, 2^-24. Infinities and NaN are not lost. `factor`: current
// factor of the gradients.
struct Underflow {
  int64_t values = 0;
  int64_t lost = 0;
};
Underflow CountUnderflow(std::span<const at::Tensor> parameters, double factor);

}  // namespace etude::suite
