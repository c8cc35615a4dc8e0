#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/boxes.h"

namespace etude::suite {

// The features of boxes (He, 1703.06870, section 3): each box is cut into `side` × `side` parts, in
// each of which 2 × 2 points are read between the features around them and averaged. Points past
// the edge read what is at the edge. Features [N, C, H, W] have a place for each `stride` pixels;
// `boxes` by picture → [boxes, C, side, side], picture by picture. Differentiable by the features.
at::Tensor RoiAlign(const at::Tensor& features, std::span<const std::vector<Box>> boxes,
                    int64_t stride, int64_t side);

}  // namespace etude::suite
