#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/trace/trace.h"

namespace etude {

// Sizes of a tensor that moves another number of elements: its first size is multiplied.
struct ScaledTensor {
  std::vector<int64_t> sizes;
  int64_t numel = 0;
  int64_t offset = 0;
};

// nullopt if nothing of the use has to change: an undefined tensor, or one without elements.
// kBadInput, with the reason in words, where that is not possible: unknown sizes, strides that are
// not those of a contiguous tensor, no dimension, and results that are no whole numbers.
Result<std::optional<ScaledTensor>> ScaleTensor(const Trace& trace, const TensorUse& use,
                                                double factor);

// The same for facts of communication: elements and bytes. kBadInput for splits of given sizes.
Result<Comm> ScaleComm(const Trace& trace, const Comm& comm, double factor);

// Whether all tensors and facts of `node`, a communication or below one, can be scaled. kBadInput
// with the node and the reason if not; lists of sizes to split by cannot.
Status CheckScales(const Trace& trace, NodeId node, double factor);

}  // namespace etude
