#pragma once

#include <ATen/core/Tensor.h>

namespace etude::suite {

// Returns the area under the receiver operating characteristic: the probability that a sample with
// label 1 has a greater score than one with label 0, where equal scores count one half (Mann &
// Whitney, 1947). scores, labels: float [N], on the CPU. NaN if all labels are equal.
double AreaUnderCurve(const at::Tensor& scores, const at::Tensor& labels);

}  // namespace etude::suite
