#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/transform/dimensions/resized_step.h"

namespace etude {

// Wanted sizes of a program; nullopt: as recorded.
struct DimensionSizes {
  std::optional<int64_t> batch;
  std::optional<int64_t> sequence;
  std::optional<int64_t> hidden;
  std::optional<int64_t> heads;
  std::optional<int64_t> ffn;
  std::optional<int64_t> vocabulary;

  bool empty() const { return *this == DimensionSizes(); }
  friend bool operator==(const DimensionSizes&, const DimensionSizes&) = default;
};

// One dimension of a program that got another size.
struct ResizedDimension {
  std::string option;  // "--batch"
  int64_t before = 0;
  int64_t after = 0;
  uint64_t factors = 0;  // number of dimensions of this meaning, such as one for each layer
};

struct DimensionEdit : ResizedStep {
  std::vector<ResizedDimension> dimensions;
};

// Returns a recorded step of a program with other sizes, whose dimensions are recognized by the
// products with weights, the attention, the lookups and the loss: docs/models/what_if.md.
//
// kBadInput, with the reason, if the dimension is not recognized or not the only one of its
// meaning, and if an operator uses it in a way that is unknown or does not follow from its size.
Result<DimensionEdit> WithDimensionSizes(const Trace& trace, const DimensionSizes& sizes,
                                         const Limits& limits);

}  // namespace etude
