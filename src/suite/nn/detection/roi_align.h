#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/detection/boxes.h"

namespace etude::suite {

// Extracts the features of boxes (He, 1703.06870, section 3). Each box is divided into `side` ×
// `side` parts, with the mean of 2 × 2 bilinear samples each. Samples outside use the nearest edge.
// Features [N, C, H, W] have a cell per `stride` pixels; `boxes` by picture → [boxes, C, side,
// side], in order of pictures. Differentiable with respect to the features.
at::Tensor RoiAlign(const at::Tensor& features, std::span<const std::vector<Box>> boxes,
                    int64_t stride, int64_t side);

}  // namespace etude::suite
