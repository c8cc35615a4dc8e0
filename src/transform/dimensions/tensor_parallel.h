#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/base/units.h"
#include "src/trace/trace.h"
#include "src/trace/words/enums.h"
#include "src/transform/dimensions/resized_step.h"

namespace etude {

// An all-reduce of a tensor among tensor-parallel ranks, each of which has a part of the sum.
struct TensorReduction {
  NodeId made;  // the operator that makes the last addend
  NodeId read;  // the first operator that needs the sum
  Bytes bytes;
  DType dtype = DType::kUnknown;
  bool in_backward = false;  // autograd's engine called `made`
};

// A recorded step with a part of the dimensions that one tensor-parallel rank of several has.
struct TensorParallelStep : ResizedStep {
  std::vector<TensorReduction> reductions;
  uint64_t weights = 0;                    // of matrix products
  uint64_t divided = 0;                    // of them
  double divided_share = 0;                // of the operations of matrix products
  std::map<int64_t, uint64_t> dimensions;  // number of divided dimensions by recorded size
  // Weights of matrix products that every rank has whole, by operator and sizes.
  std::vector<std::string> whole;
  // Number of matrix products of a rank by operator and sizes: "aten::mm 16 x 8, 8 x 32".
  std::map<std::string, uint64_t> products;
};

// Divides the weights of a recorded training step of one rank among `ranks` tensor-parallel ranks,
// as Megatron-LM does: dimensions that are results of a product with one weight and are summed over
// in a product with the next one, such as the hidden dimension of an MLP or the heads of an
// attention. No weight is divided in two dimensions; dimensions of fewer weights come first.
// docs/models/what_if.md.
//
// kBadInput, with the reason, if there is no such dimension, if `ranks` does not divide one, and if
// an operator without a known rule uses one.
Result<TensorParallelStep> DivideAmongTensorRanks(const Trace& trace, int64_t ranks,
                                                  const Limits& limits);

// Returns the all-reduces of a step with another number of layers: `edited` has nodes that repeat
// those of the divided step (`origins`, by node). Where the operator that reads a sum is missing
// after its addends, as after the last layer, the next one on the host reads it.
std::vector<TensorReduction> RepeatReductions(std::span<const TensorReduction> reductions,
                                              const Trace& edited, std::span<const NodeId> origins);

// Returns `trace`, a result of DivideAmongTensorRanks or an edit of it with the same nodes, with
// these all-reduces. Each begins when its last addend was made and the one before has ended; the
// operator that reads the sum waits.
Result<Trace> AddTensorReductions(const Trace& trace, std::span<const TensorReduction> reductions,
                                  int64_t ranks, const Limits& limits);

// Name of the group of tensor-parallel ranks in AddTensorReductions.
inline constexpr std::string_view kTensorGroup = "tensor_parallel";

}  // namespace etude
