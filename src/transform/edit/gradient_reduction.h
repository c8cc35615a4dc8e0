#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/base/units.h"
#include "src/trace/trace.h"
#include "src/trace/words/enums.h"

namespace etude {

// Labels of DistributedDataParallel around copies of a gradient into its bucket and back.
inline constexpr std::string_view kIntoBucket = "torch::distributed::reducer::mul_out";
inline constexpr std::string_view kFromBucket =
    "torch.distributed.ddp.reducer::copy_bucket_to_grad";

// A gradient of a parameter in a recorded backward pass.
struct RecordedGradient {
  NodeId node;  // the label in which autograd adds it to the parameter's gradient
  Bytes bytes;
  DType dtype = DType::kUnknown;
};

// Gradients of one backward pass, in the order of their arrival.
struct BackwardPass {
  std::vector<RecordedGradient> gradients;
  NodeId after;  // first host node after the pass; kNone: the trace ends with it
};

// Finds the backward passes of a recorded step by autograd's labels, whose inputs are the
// gradients. Gradients of unknown size are left out. Empty without gradients or times.
std::vector<BackwardPass> FindBackwardPasses(const Trace& trace);

// Sizes of buckets, by default those of DistributedDataParallel. With its option bucket_cap_mb all
// buckets have that size.
struct BucketSizes {
  Bytes first{1 << 20};   // of the first bucket of a pass
  Bytes other{25 << 20};  // of the others
};

// Gradients that are reduced together.
struct GradientBucket {
  int64_t gradients = 0;
  Bytes bytes;
  DType dtype = DType::kUnknown;
  size_t last = 0;  // index of its last gradient in the pass
};

// Divides the gradients of a pass into buckets as PyTorch's DistributedDataParallel does after its
// first iteration: in the order of arrival, by type; a bucket ends with the gradient that reaches
// its size.
std::vector<GradientBucket> BucketsOf(std::span<const RecordedGradient> gradients,
                                      const BucketSizes& sizes);

struct GradientReduction {
  Trace trace;
  std::vector<std::vector<GradientBucket>> passes;
  int64_t copies = 0;  // between gradients and buckets that were added
};

// Returns `trace`, a recorded step of one rank without communication, as one of `ranks`
// data-parallel ranks: an all-reduce per bucket begins when the bucket's last gradient has arrived
// and its predecessor has ended; the first work after a pass waits for all of it. Gradients of
// devices arrive when the work launched before has ended. On the host, each gradient is divided
// into its bucket when it has arrived, and copied back after the pass, at the speed of
// FindCopyRate; on devices, and without that speed, these copies are not added. kBadInput, with the
// reason, for traces without known gradients and with communication.
Result<GradientReduction> AddGradientReduction(const Trace& trace, int64_t ranks,
                                               const BucketSizes& sizes, const Limits& limits);

}  // namespace etude
