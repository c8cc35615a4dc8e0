#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/layers.h"
#include "src/suite/nn/weights.h"

// Layers of Transformers (Vaswani et al., 1706.03762). Texts are [N, T, width].
namespace etude::suite {

// Normalises the last dimension, with a learned scale and shift (Ba et al., 1607.06450).
class LayerNorm {
 public:
  LayerNorm(const Scope& scope, int64_t width, double epsilon = 1e-5);
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  double epsilon_;
  at::Tensor scale_;
  at::Tensor shift_;
};

// The shape of a Transformer layer.
struct TransformerLayerShape {
  int64_t width = 0;
  int64_t heads = 0;
  int64_t hidden = 0;     // width between the two linear layers
  bool decoder = false;   // also attends to another text
  bool gelu = false;      // between the linear layers; otherwise ReLU
  double epsilon = 1e-5;  // of the norms
  double dropped = 0.1;
};

// Multi-head attention. Each word of `x` attends to the words of `memory` selected by `mask`: bool,
// broadcast to [N, heads, T of x, T of memory].
class Attention {
 public:
  Attention(const Scope& scope, const TransformerLayerShape& shape);
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& memory,
                        const at::Tensor& mask) const;

 private:
  const Weights* weights_;
  int64_t heads_;
  double dropped_;
  Linear query_;
  Linear key_;
  Linear value_;
  Linear out_;
};

// A text that a decoder attends to.
struct AttendedText {
  at::Tensor x;     // [N, T, width]
  at::Tensor mask;  // bool [N, 1, 1, T]: no padding
};

// Attention and two linear layers. After each part, its input is added and the sum normalised.
class TransformerLayer {
 public:
  TransformerLayer(const Scope& scope, const TransformerLayerShape& shape);
  // `memory`: for decoders only.
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& mask,
                        const AttendedText* memory = nullptr) const;

 private:
  at::Tensor Dropped(const at::Tensor& x) const;

  const Weights* weights_;
  TransformerLayerShape shape_;
  Attention self_;
  LayerNorm self_norm_;
  std::optional<Attention> cross_;
  std::optional<LayerNorm> cross_norm_;
  Linear inner_;
  Linear outer_;
  LayerNorm norm_;
};

struct TransformerShape {
  int64_t words = 0;  // of the vocabulary that both languages share
  int64_t width = 512;
  int64_t heads = 8;
  int64_t hidden = 2048;
  int64_t layers = 6;  // of the encoder, and the same number of the decoder
  double dropped = 0.1;
};

// The Transformer: an encoder, a decoder, and one word matrix for all inputs and outputs. Positions
// are encoded by sines.
class Transformer {
 public:
  Transformer(const Scope& scope, const TransformerShape& shape);

  // text: int64 [N, T], padded.
  AttendedText Encode(const at::Tensor& text) const;
  // before: int64 [N, t] → [N, t, width], where each position depends on those before it only.
  at::Tensor Decode(const at::Tensor& before, const AttendedText& memory) const;
  // [..., width] → [..., words].
  at::Tensor Logits(const at::Tensor& x) const;

 private:
  at::Tensor Embed(const at::Tensor& text) const;

  const Weights* weights_;
  TransformerShape shape_;
  Embedding words_;
  std::vector<TransformerLayer> encoder_;
  std::vector<TransformerLayer> decoder_;
};

// Returns which words of texts are not padding: bool [N, 1, 1, T].
at::Tensor PaddingMask(const at::Tensor& text);

}  // namespace etude::suite
