#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/trace/trace.h"

namespace etude {

// Sizes of a tensor with a scaled number of elements: its first size is multiplied.
struct ScaledTensor {
  std::vector<int64_t> sizes;
  int64_t numel = 0;
  int64_t offset = 0;
};

// Returns nullopt if the use needs no change: an undefined tensor, or one without elements.
// kBadInput with the reason if it cannot be scaled: unknown sizes, strides of a non-contiguous
// tensor, no dimension, or results that are not whole numbers.
Result<std::optional<ScaledTensor>> ScaleTensor(const Trace& trace, const TensorUse& use,
                                                double factor);

// Scales facts of communication: elements and bytes. kBadInput for given split sizes.
Result<Comm> ScaleComm(const Trace& trace, const Comm& comm, double factor);

// Checks that all tensors and facts of `node`, a communication or below one, can be scaled.
// kBadInput with the node and the reason if not; lists of split sizes cannot.
Status CheckScales(const Trace& trace, NodeId node, double factor);

}  // namespace etude
