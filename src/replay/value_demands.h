#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "src/replay/fill_rule.h"
#include "src/trace/trace.h"

namespace etude {

// How one operator argument restricts the values it may have.
struct ValueDemand {
  std::string_view op;  // base name: "aten::embedding"
  int argument = 0;     // its position
  enum class Bound : uint8_t {
    kRows,          // index into dimension `dim` of argument `of`; dim -1: the last one
    kRowsByArg,     // the same, the dimension being argument `dim`
    kSizesByArg,    // index below element [argument `dim`] of the list argument `of`
    kProduct,       // index below the product of the list argument `of`
    kPlane,         // index below the product of the last `dim` sizes of argument `of`
    kElements,      // index into the flattened argument `of`
    kNumber,        // index below the number in argument `of`
    kClasses,       // class number: dimension 1 of argument `of`, or 0 if it has one dimension
    kLabels,        // class number of which 0 is the blank: dimension `dim` of argument `of`
    kIndexList,     // element k of the list indexes a dimension of argument `of`
    kOffsets,       // ascending offsets into the elements of argument `of`
    kPackLengths,   // lengths of packed sequences
    kPackSizes,     // batch sizes of packed sequences: descending, sum = rows of argument `of`
    kRepeats,       // their sum is the number of results
    kMaskOfResult,  // as many true as the result has rows
    kOutputRows,    // index below dimension `dim` of the result
    kDivisor,       // must not be 0
    kPositive,      // should be above 0: a variance, a scale
    kRoot,          // must be above 0, or the result is no number: what a root or logarithm is of
    kWeight,        // a weight: sums over rows of it should stay near one
  };
  Bound bound = Bound::kRows;
  int of = 0;
  int dim = 0;
};

// The table of demands, by operator.
std::span<const ValueDemand> ValueDemands();

// How to fill `tensor`, an argument of call `node` that `demand` is about, of a list its element
// number `element`; nullopt where the call's arguments do not tell.
std::optional<FillRule> RuleOf(const Trace& trace, NodeId node, const ValueDemand& demand,
                               size_t element, TensorId tensor);

}  // namespace etude
