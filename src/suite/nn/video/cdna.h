#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/data/video/push_sequences.h"
#include "src/suite/nn/layers.h"
#include "src/suite/nn/video/conv_lstm.h"
#include "src/suite/nn/weights.h"

namespace etude::suite {

// Shape of the network of convolutional dynamic neural advection (CDNA; Finn, Goodfellow & Levine,
// 1605.07157).
struct CdnaShape {
  int64_t colours = 3;
  int64_t side = 64;      // of frames, a multiple of 8
  int64_t channels = 32;  // of recurrent layers at half the side; twice and four times at smaller
  int64_t repeated = 2;   // recurrent layers at each size before the actions are added
  int64_t kernel = 5;     // of recurrent layers, odd
  int64_t moved = 10;     // copies of a frame, each moved by a kernel of its own
  int64_t actions = 5;
  int64_t states = 5;
  Conv2d::Start start = Conv2d::Start::kXavier;  // of all convolutions
};

// Predicts the next frame of a video as a mixture of the last frame, moved copies of it, and new
// pixels. Layers of each sequence are normalised over all channels and positions.
class Cdna {
 public:
  Cdna(const Scope& scope, const CdnaShape& shape);

  // All frames and states after the first, predicted from the ones before.
  struct Prediction {
    at::Tensor frames;  // [N, T − 1, colours, side, side]
    at::Tensor states;  // [N, T − 1, states]
  };
  // Predicts each frame from the true one before it if that is one of the first `context` or
  // `is_true`, bool [N, T], is set for it, otherwise from the predicted one. States are predicted
  // from the first one. An undefined `is_true` is false everywhere.
  Prediction operator()(const PushSequences& videos, int64_t context,
                        const at::Tensor& is_true) const;

 private:
  // A recurrent layer with a norm of its outputs.
  struct Recurrent {
    ConvLstm cell;
    GroupNorm norm;
  };
  using States = std::vector<ConvLstm::State>;  // of all recurrent layers

  // Returns the frame after `frame` [N, colours, side, side] for actions and states [N, A + S].
  at::Tensor Next(const at::Tensor& frame, const at::Tensor& conditions, States& states) const;
  // Returns the copies [N, moved, colours, side, side].
  at::Tensor Moved(const at::Tensor& frame, const at::Tensor& hidden) const;

  CdnaShape shape_;
  Conv2d reduce1_;
  GroupNorm norm1_;
  Conv2d reduce2_;
  Conv2d reduce3_;
  Conv2d condition_;
  TransposedConv2d enlarge1_;
  TransposedConv2d enlarge2_;
  TransposedConv2d enlarge3_;
  GroupNorm norm3_;
  std::vector<Recurrent> recurrent_;  // in the order of their use
  Conv2d create_;
  Conv2d masks_;
  Linear kernels_;
  Linear state_;
};

}  // namespace etude::suite
