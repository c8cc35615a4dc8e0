#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/functional.h"
#include "src/suite/nn/weights.h"

namespace etude::suite {

// Shape of the residual codec (Toderici et al., 1608.05148). The defaults are the published ones.
struct CodecShape {
  int64_t iterations = 16;
  int64_t bits = 32;                                      // per iteration and cell
  std::array<int64_t, 4> encoder = {64, 256, 512, 512};   // channels: a convolution, three LSTMs
  std::array<int64_t, 4> decoder = {512, 512, 256, 128};  // channels of the LSTMs
  enum class Start : uint8_t {
    kUniform,  // like PyTorch's convolutions
    kScaled,   // normal; signals keep their size through the gates, neighbouring pixels are equal
  };
  Start start = Start::kUniform;
  // Adds linear maps within each cell: from its pixels to its signs, and back.
  bool has_shortcuts = false;

  // Returns the bits per pixel of all iterations.
  double rate() const;
};

// A step of a convolutional LSTM without biases: the gates are convolutions of the input (3 × 3)
// and of the previous output.
class StridedLstm {
 public:
  struct Shape {
    int64_t in = 0;
    int64_t hidden = 0;
    int64_t stride = 1;
    int64_t hidden_kernel = 1;  // side of the kernels over the previous output
  };
  struct State {
    at::Tensor hidden;  // [N, hidden, H, W], also the output
    at::Tensor cell;
  };
  // `group`: so many consecutive channels start equal.
  StridedLstm(const Scope& scope, const Shape& shape, CodecShape::Start start, int64_t group = 1);
  // An undefined state is 0.
  State operator()(const at::Tensor& x, const State& before) const;

 private:
  Window of_input_;
  Window of_hidden_;
  at::Tensor weight_ih_;
  at::Tensor weight_hh_;
};

// Codes pictures in iterations. Each one codes the rest that the previous ones left in `bits` signs
// for each cell of 16 × 16 pixels; the decoder's answers add up.
class ResidualCodec {
 public:
  static constexpr int64_t kCell = 16;  // pixels

  ResidualCodec(const Scope& scope, const CodecShape& shape);

  const CodecShape& shape() const { return shape_; }

  // Returns the pictures after each iteration: [N, 3, H, W], like `pictures`, with values around 0
  // to 1. H and W are multiples of kCell. In training, signs are drawn at random with the mean that
  // the encoder asks for, and gradients pass as if they were this mean.
  std::vector<at::Tensor> operator()(const at::Tensor& pictures) const;

 private:
  at::Tensor Signs(const at::Tensor& means) const;

  const Weights* weights_;
  CodecShape shape_;
  at::Tensor encoder_first_;
  std::vector<StridedLstm> encoder_;
  at::Tensor binarizer_;
  at::Tensor decoder_first_;
  std::vector<StridedLstm> decoder_;
  at::Tensor decoder_last_;
  at::Tensor to_signs_;  // shortcuts; undefined if there are none
  at::Tensor from_signs_;
};

}  // namespace etude::suite
