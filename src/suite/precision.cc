#include "src/suite/precision.h"

#include <cmath>

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

namespace etude::suite {
namespace {

constexpr double kFirstFactor = 65'536;  // same as PyTorch's GradScaler
constexpr int64_t kStepsToDouble = 2000;
constexpr double kLargestLost = 0x1p-25;

}  // namespace

PrecisionGuard::PrecisionGuard(Precision precision, const at::Device& device) {
  if (precision == Precision::kFp32) return;
  device_ = device.type();
  at::autocast::set_autocast_dtype(*device_,
                                   precision == Precision::kBf16 ? at::kBFloat16 : at::kHalf);
  at::autocast::set_autocast_enabled(*device_, true);
}

PrecisionGuard::~PrecisionGuard() {
  if (!device_) return;
  at::autocast::set_autocast_enabled(*device_, false);
  at::autocast::clear_cache();  // cached copies of weights, which change
}

LossScale::LossScale(Precision precision, std::optional<double> fixed)
    : dynamic_(!fixed && precision == Precision::kFp16),
      used_(fixed || dynamic_),
      factor_(fixed.value_or(dynamic_ ? kFirstFactor : 1)) {}

bool LossScale::Accept(double norm) {
  if (!std::isfinite(norm)) {
    ++skipped_;
    good_steps_ = 0;
    if (dynamic_) factor_ /= 2;
    return false;
  }
  if (++good_steps_ >= kStepsToDouble) {
    good_steps_ = 0;
    if (dynamic_) factor_ *= 2;
  }
  return true;
}

void LossScale::Restore(double factor, int64_t good_steps, int64_t skipped) {
  factor_ = factor;
  good_steps_ = good_steps;
  skipped_ = skipped;
}

Underflow CountUnderflow(std::span<const at::Tensor> parameters, double factor) {
  const at::NoGradGuard no_gradients;
  Underflow count;
  for (const at::Tensor& parameter : parameters) {
    if (!parameter.grad().defined()) continue;
    const at::Tensor size = parameter.grad().abs();
    const at::Tensor is_value = size.isfinite().logical_and(size.gt(0));
    count.values += is_value.sum().item<int64_t>();
    count.lost += is_value.logical_and(size.le(kLargestLost * factor)).sum().item<int64_t>();
  }
  return count;
}

}  // namespace etude::suite
