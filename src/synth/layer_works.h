#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/synth/transformer/transformer_layer.h"

namespace etude {

// A matrix product of `rows` rows, each with one of `count` weights of `in` × `out`.
struct MatrixProduct {
  int64_t rows = 0;
  int64_t in = 0;
  int64_t out = 0;
  int64_t count = 1;
  bool bias = false;
  bool alike = true;  // each of `count` products has as many rows

  // Of each product; nullopt: they differ. `rows` are all of them.
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

// Elements that work without a matrix product goes through.
struct ElementCounts {
  int64_t read = 0;
  int64_t written = 0;
  int64_t kept = 0;
};

// A pass of a layer, work by work. What a work waits for is a list of indices, and so is what
// adding one gives: it itself.
class LayerWorks {
 public:
  using In = std::vector<size_t>;

  LayerWorks(const TransformerModel& model, const LayerPlan& plan);

  int64_t element() const { return element_; }    // bytes of weights and activations
  int64_t gradient() const { return gradient_; }  // bytes of gradients of weights
  // Of the micro-batch on this rank, where matrices are and between them.
  int64_t tokens() const { return tokens_; }
  int64_t shared_tokens() const { return shared_tokens_; }
  bool shares_tokens() const { return shares_tokens_; }
  // Elements, and bytes, of the tokens between the matrices.
  int64_t SharedSize() const { return shared_tokens_ * model_.hidden; }
  int64_t SharedBytes() const { return SharedSize() * element_; }

  std::vector<LayerWork>& works() { return works_; }
  const std::vector<LayerWork>& works() const { return works_; }

  In Add(LayerWork work);
  // `flops` for each of `count` elements.
  In Elementwise(std::string name, In in, int64_t count, int64_t flops, ElementCounts elements);
  In Collective(std::string name, In in, CollectiveType type, LayerAxis axis, int64_t bytes);

  // To the next context-parallel rank, and from the one before.
  In Send(std::string name, In in, int64_t bytes);
  In Receive(std::string name, In in, int64_t bytes);

  // Keeps `kept` elements of what goes in.
  In Multiply(std::string name, In in, const MatrixProduct& product, int64_t kept);
  // The gradient of what went in.
  In InputGradient(const std::string& name, In in, const MatrixProduct& product);
  // The gradient of the weight, which is added to that of other micro-batches. Of what went in each
  // tensor-parallel rank has kept a share of `gathered` bytes, which is gathered for it; 0: all.
  void WeightGradient(const std::string& name, In in, const MatrixProduct& product,
                      int64_t gathered);
  // Of a weight of `size` elements that `elements` values were added to, or multiplied with.
  void VectorGradient(const std::string& name, In in, int64_t elements, int64_t size);

  // From a share of the tokens to all of them; only with sequence parallelism. Here and below
  // tokens are as wide as the hidden units unless `width` is said.
  In GatherTokens(const std::string& name, In in, std::optional<int64_t> width = {});
  // Sums what all tensor-parallel ranks have for all tokens; with sequence parallelism each keeps
  // a share of the tokens.
  In SumTokens(const std::string& name, In in, std::optional<int64_t> width = {});

  // Of these tokens, if not of those between the matrices.
  struct TokenSize {
    std::optional<int64_t> width = {};
    std::optional<int64_t> tokens = {};
  };
  In Norm(const std::string& name, In in, TokenSize of);
  In Norm(const std::string& name, In in) { return Norm(name, std::move(in), TokenSize{}); }
  // Adds `addends` gradients that went past the norm, or that came from elsewhere.
  In NormBackward(const std::string& name, In in, int64_t addends,
                  std::optional<int64_t> width = {});

  // Adds the branch, or branches, to what went past them.
  void Residual(const std::string& name, In in, int64_t branches);
  // Of a bias that the tokens between the matrices have.
  void BiasGradient(const std::string& name, const In& in);

  // Work of `forward` between these indices once more.
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
