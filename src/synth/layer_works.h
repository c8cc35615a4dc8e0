#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/synth/transformer/transformer_layer.h"

namespace etude {

// Matrix product of `rows` rows, each with one of `count` weights of `in` × `out`.
struct MatrixProduct {
  int64_t rows = 0;
  int64_t in = 0;
  int64_t out = 0;
  int64_t count = 1;
  bool bias = false;
  bool alike = true;  // each of the `count` products has the same number of rows

  // Returns the rows of each product; nullopt if they differ. `rows` is the total.
  std::optional<int64_t> RowsOfEach() const {
    if (!alike || count < 1 || rows % count != 0) return std::nullopt;
    return rows / count;
  }
  int64_t flops() const { return 2 * rows * in * out; }
  int64_t inputs() const { return rows * in; }
  int64_t outputs() const { return rows * out; }
  int64_t weights() const { return in * out * count; }
  int64_t biases() const { return bias ? out * count : 0; }
};

// Numbers of elements of work without a matrix product.
struct ElementCounts {
  int64_t read = 0;
  int64_t written = 0;
  int64_t kept = 0;
};

// A pass of a layer. Dependencies of work are lists of indices, as returned on adding work.
class LayerWorks {
 public:
  using In = std::vector<size_t>;

  LayerWorks(const TransformerModel& model, const LayerPlan& plan);

  int64_t element() const { return element_; }    // bytes of weights and activations
  int64_t gradient() const { return gradient_; }  // bytes of gradients of weights
  // Tokens of the micro-batch on this rank, in the matrices and between them.
  int64_t tokens() const { return tokens_; }
  int64_t shared_tokens() const { return shared_tokens_; }
  bool shares_tokens() const { return shares_tokens_; }
  // Elements, and bytes, of the tokens between the matrices.
  int64_t SharedSize() const { return shared_tokens_ * model_.hidden; }
  int64_t SharedBytes() const { return SharedSize() * element_; }

  std::vector<LayerWork>& works() { return works_; }
  const std::vector<LayerWork>& works() const { return works_; }

  In Add(LayerWork work);
  // Adds `flops` operations for each of `count` elements.
  In Elementwise(std::string name, In in, int64_t count, int64_t flops, ElementCounts elements);
  In Collective(std::string name, In in, CollectiveType type, LayerAxis axis, int64_t bytes);

  // Add messages to the next context-parallel rank, and from the previous one.
  In Send(std::string name, In in, int64_t bytes);
  In Receive(std::string name, In in, int64_t bytes);

  // Adds a product; keeps `kept` elements of its input.
  In Multiply(std::string name, In in, const MatrixProduct& product, int64_t kept);
  // Adds and returns the gradient of the input.
  In InputGradient(const std::string& name, In in, const MatrixProduct& product);
  // Adds the gradient of the weight, accumulated over micro-batches. If each tensor-parallel rank
  // kept only a share of the input, all `gathered` bytes are gathered first; 0: it kept all.
  void WeightGradient(const std::string& name, In in, const MatrixProduct& product,
                      int64_t gathered);
  // Adds the gradient of a weight of `size` elements that `elements` values were added to, or
  // multiplied with.
  void VectorGradient(const std::string& name, In in, int64_t elements, int64_t size);

  // Gathers all tokens from shares; only with sequence parallelism. Here and below the width of
  // tokens is the hidden size unless `width` is given.
  In GatherTokens(const std::string& name, In in, std::optional<int64_t> width = {});
  // Sums the values of all tensor-parallel ranks for all tokens; with sequence parallelism each
  // rank keeps a share of the tokens.
  In SumTokens(const std::string& name, In in, std::optional<int64_t> width = {});

  // Size of tokens other than those between the matrices.
  struct TokenSize {
    std::optional<int64_t> width = {};
    std::optional<int64_t> tokens = {};
  };
  In Norm(const std::string& name, In in, TokenSize of);
  In Norm(const std::string& name, In in) { return Norm(name, std::move(in), TokenSize{}); }
  // Adds `addends` gradients that bypassed the norm, or came from elsewhere.
  In NormBackward(const std::string& name, In in, int64_t addends,
                  std::optional<int64_t> width = {});

  // Adds one or several branches to the values that bypassed them.
  void Residual(const std::string& name, In in, int64_t branches);
  // Adds the gradient of a bias of the tokens between the matrices.
  void BiasGradient(const std::string& name, const In& in);

  // Repeats the work of `forward` between these indices.
  In Again(const LayerWorks& forward, size_t begin, size_t end, const In& in);

 private:
  const TransformerModel& model_;
  const LayerPlan& plan_;
  const int64_t element_;
  const int64_t gradient_;
  const int64_t tokens_;
  const bool shares_tokens_;
  const int64_t shared_tokens_;
  std::vector<LayerWork> works_;
};

}  // namespace etude
