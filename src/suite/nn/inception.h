#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/layers.h"
#include "src/suite/nn/weights.h"

namespace etude::suite {

// A convolution without bias, batch norm and ReLU.
class InceptionConvolution {
 public:
  struct Shape {
    std::string_view name;
    int64_t out = 0;
    int64_t height = 1;  // of the kernel
    int64_t width = 1;
    int64_t stride = 1;
    bool keeps_size = true;  // zero padding
  };
  InceptionConvolution(const Scope& scope, int64_t in, const Shape& shape);
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  Conv2d convolution_;
  BatchNorm norm_;
};

// Branches on the same input, with concatenated channels.
class InceptionBlock {
 public:
  enum class Pool : uint8_t { kNone, kAverage, kHalve };
  // A pool, then consecutive convolutions, then optional parallel convolutions.
  struct BranchShape {
    Pool pool = Pool::kNone;
    std::vector<InceptionConvolution::Shape> chain;
    std::vector<InceptionConvolution::Shape> ends;
  };
  InceptionBlock(const Scope& scope, int64_t in, const std::vector<BranchShape>& branches);
  at::Tensor operator()(const at::Tensor& x) const;
  int64_t out() const { return out_; }

 private:
  struct Branch {
    Pool pool = Pool::kNone;
    std::vector<InceptionConvolution> chain;
    std::vector<InceptionConvolution> ends;
  };
  int64_t out_ = 0;
  std::vector<Branch> branches_;
};

// Inception-v3 (Szegedy, 1512.00567) without classifiers: 21,785,568 parameters with torchvision's
// names.
class InceptionV3 {
 public:
  static constexpr int64_t kFeatures = 2048;

  explicit InceptionV3(const Scope& scope);
  // Maps pictures [N, 3, H, W], with colours from -1 to 1 and sides of at least 75, to [N,
  // kFeatures].
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  std::vector<InceptionConvolution> first_;
  std::vector<InceptionBlock> blocks_;
};

}  // namespace etude::suite
