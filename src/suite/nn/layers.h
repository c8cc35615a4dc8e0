#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/functional.h"
#include "src/suite/nn/weights.h"

// Layers: each takes the place of its weights in a model and is called with what goes in. Weights
// begin as PyTorch's do (uniform, to 1 / √fan-in) unless said. Copies share their weights.
namespace etude::suite {

// [..., in] → [..., out].
class Linear {
 public:
  Linear(const Scope& scope, int64_t in, int64_t out, bool bias = true);
  at::Tensor operator()(const at::Tensor& x) const;
  const at::Tensor& weight() const { return weight_; }
  const at::Tensor& bias() const { return bias_; }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

// [N, in, H, W] → [N, out, H', W'].
class Conv2d {
 public:
  enum class Start : uint8_t {
    kUniform,  // as PyTorch's
    kHe,       // normal, √(2 / fan-out) (He, 1502.01852)
    kSmall,    // normal, 0.01; biases are 0
  };
  Conv2d(const Scope& scope, int64_t in, int64_t out, Window window, bool bias = true,
         Start start = Start::kUniform);
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  Window window_;
  at::Tensor weight_;
  at::Tensor bias_;
};

// Normalises each channel (the second dimension) over the batch; when asked, by running means
// (Ioffe & Szegedy, 1502.03167).
class BatchNorm {
 public:
  explicit BatchNorm(const Scope& scope, int64_t channels, double epsilon = 1e-5,
                     double momentum = 0.1, double scale = 1);
  at::Tensor operator()(const at::Tensor& x) const;
  // From now on by running means always, and what it holds is not learned.
  void Fix() { fixed_ = true; }

 private:
  bool fixed_ = false;
  const Weights* weights_;
  double epsilon_;
  double momentum_;
  at::Tensor scale_;
  at::Tensor shift_;
  at::Tensor mean_;
  at::Tensor variance_;
};

// int64 [...] → [..., width]; normal with `deviation`. Row `padding` is 0 and stays it.
class Embedding {
 public:
  Embedding(const Scope& scope, int64_t rows, int64_t width, double deviation = 1,
            int64_t padding = -1);
  at::Tensor operator()(const at::Tensor& index) const;
  const at::Tensor& weight() const { return weight_; }

 private:
  int64_t padding_;
  at::Tensor weight_;
};

// A recurrent layer over [T, N, in], or [N, T, in] with `batch_first`.
class Recurrent {
 public:
  enum class Cell : uint8_t { kLstm, kGru };
  struct Shape {
    Cell cell = Cell::kLstm;
    int64_t in = 0;
    int64_t hidden = 0;
    int64_t layers = 1;
    bool bidirectional = false;
    bool batch_first = false;
    bool bias = true;
  };
  Recurrent(const Scope& scope, const Shape& shape);

  // State before the first and after the last step: `cell` is of LSTMs only. Both are
  // [layers × directions, N, hidden]; undefined before the first step: 0.
  struct State {
    at::Tensor hidden;
    at::Tensor cell;
  };
  // The outputs of all steps, [T, N, directions × hidden], and the last state.
  std::pair<at::Tensor, State> operator()(const at::Tensor& x, const State& before = {}) const;
  // The same without a state before, of GRUs only: those backwards begin at each one's end.
  PackedSequences operator()(const PackedSequences& x) const;

 private:
  // Puts the weights into one piece of memory, where cuDNN wants them so: else it copies them in
  // each step.
  void Gather() const;

  const Weights* weights_;
  Shape shape_;
  std::vector<at::Tensor> flat_;
};

}  // namespace etude::suite
