#pragma once

#include <cstdint>
#include <span>
#include <string_view>

// Building blocks of STAGE's models (docs/models/stage.md): tensors, each the result of one
// operator on at most two others.
namespace etude::stage {

enum class Op : uint8_t {
  kPlaceholder,
  kWeight,  // a placeholder that training changes
  kIdentical,
  kShadow,  // represents a tensor of another pipeline stage
  kAdd,
  kElement,
  kElement2,
  kEinsum,
  kSlice,
  kBroadcast,
  kReshape,
  kCustom,
};
std::string_view Name(Op op);

// Shapes are dimensions separated by spaces, each a product of letters, divided by others:
//   B micro-batch   S sequence   D dmodel   F dff   H heads   V vocabulary   E experts   k top
//   experts d dp   t tp   c cp   e ep
// and letters that depend on the use of a table:
//   K key and value heads   G all heads of queries, keys and values
//   q sequence on one rank   s the same, if tensor-parallel ranks split it
//   p, r routed tokens before and after the exchange between expert-parallel ranks
//   i, o input and output of an embedding
// Names of tensors refer to the same layer, or begin with '@' and are resolved by the model.
struct TensorRow {
  std::string_view name;
  Op op;
  // kElement, kElement2: operations per element. kCustom: operations per element of the first
  // shape. kEinsum: NumPy's notation. kSlice: `dimension:new`. kBroadcast: `dimension:factor`.
  std::string_view attr;
  std::string_view x1;
  std::string_view shape1;  // expected shape of x1
  std::string_view x2 = {};
  std::string_view shape2 = {};   // expected shape of x2; kReshape, kCustom: shape of the result
  std::string_view partial = {};  // kAdd: partial sums of both inputs; kCustom: of the result
  std::string_view after = {};    // kCustom: other tensors that it depends on, separated by ' '
};

std::span<const TensorRow> AttentionRows();         // with norm, without kernel
std::span<const TensorRow> KernelRows();            // as many key and value heads as heads
std::span<const TensorRow> GroupedKernelRows();     // fewer key and value heads
std::span<const TensorRow> MiddleRows();            // residual sum and norm between both halves
std::span<const TensorRow> FeedForwardRows();       // two matrices
std::span<const TensorRow> GatedFeedForwardRows();  // three matrices
std::span<const TensorRow> ExpertFrameRows();       // router, dispatch, combination
std::span<const TensorRow> ExpertRows();            // parts around one expert's feed-forward
std::span<const TensorRow> FeedForwardSumRows();    // residual sum
std::span<const TensorRow> EmbeddingRows();
std::span<const TensorRow> LossRows();

}  // namespace etude::stage
