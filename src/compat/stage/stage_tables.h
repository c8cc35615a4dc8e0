#pragma once

#include <cstdint>
#include <span>
#include <string_view>

// What STAGE's models are made of (docs/models/stage.md): tensors, each of which is one operator of
// at most two others.
namespace etude::stage {

enum class Op : uint8_t {
  kPlaceholder,
  kWeight,  // a placeholder that training changes
  kIdentical,
  kShadow,  // stands for a tensor of another pipeline stage
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

// Shapes are dimensions with a space between them, each a product of letters, divided by others:
//   B micro-batch   S sequence   D dmodel   F dff   H heads   V vocabulary   E experts   k top
//   experts d dp   t tp   c cp   e ep
// and letters that differ from one use of a table to another:
//   K key and value heads   G all heads of queries, keys and values
//   q a sequence on one rank   s the same where tensor-parallel ranks share it out
//   p, r routed tokens before and after the exchange between expert-parallel ranks
//   i, o what an embedding takes and gives
// Names of tensors are of the same layer, or begin with '@' and say what the model ties them to.
struct TensorRow {
  std::string_view name;
  Op op;
  // kElement, kElement2: operations per element. kCustom: the same, of the first shape. kEinsum: as
  // NumPy writes it. kSlice: `dimension:new`. kBroadcast: `dimension:factor`.
  std::string_view attr;
  std::string_view x1;
  std::string_view shape1;  // in which x1 is expected
  std::string_view x2 = {};
  std::string_view shape2 = {};   // in which x2 is expected; kReshape, kCustom: the result's
  std::string_view partial = {};  // kAdd: of both inputs, kCustom: of the result: sums not yet done
  std::string_view after = {};    // kCustom: tensors that it waits for besides, ' ' between them
};

std::span<const TensorRow> AttentionRows();         // with its norm, without the kernel
std::span<const TensorRow> KernelRows();            // as many key and value heads as heads
std::span<const TensorRow> GroupedKernelRows();     // fewer of them
std::span<const TensorRow> MiddleRows();            // residual sum and norm between the two halves
std::span<const TensorRow> FeedForwardRows();       // two matrices
std::span<const TensorRow> GatedFeedForwardRows();  // three
std::span<const TensorRow> ExpertFrameRows();       // router, dispatch, combination
std::span<const TensorRow> ExpertRows();            // what surrounds one expert's feed-forward
std::span<const TensorRow> FeedForwardSumRows();    // residual sum
std::span<const TensorRow> EmbeddingRows();
std::span<const TensorRow> LossRows();

}  // namespace etude::stage
