#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "src/replay/values/fill_rule.h"
#include "src/trace/trace.h"

namespace etude {

// Restriction of the values of an operator argument.
struct ValueDemand {
  std::string_view op;  // base name: "aten::embedding"
  int argument = 0;     // position
  enum class Bound : uint8_t {
    kRows,          // index into dimension `dim` of argument `of`; dim -1: the last one
    kRowsByArg,     // like kRows; the dimension is given by argument `dim`
    kSizesByArg,    // index below element [argument `dim`] of the list argument `of`
    kProduct,       // index below the product of the list argument `of`
    kPlane,         // index below the product of the last `dim` sizes of argument `of`
    kElements,      // index into the flattened argument `of`
    kNumber,        // index below the number in argument `of`
    kClasses,       // class index: dimension 1 of argument `of`; 0 if it has one dimension
    kLabels,        // class index with 0 as the blank: dimension `dim` of argument `of`
    kIndexList,     // element k of the list indexes a dimension of argument `of`
    kOffsets,       // ascending offsets into the elements of argument `of`
    kPackLengths,   // lengths of packed sequences
    kPackSizes,     // batch sizes of packed sequences: descending, sum = rows of argument `of`
    kRepeats,       // repeats: their sum is the number of results
    kMaskOfResult,  // number of true or non-zero elements = rows of the result
    kMaskOfArg,     // number of true elements = elements of argument `of`
    kDistinct,      // number of different values = rows of the result
    kHighest,       // index below dimension `dim` of the result, including the last one
    kDivisor,       // must not be 0
    kPositive,      // should be above 0: a variance, a scale
    kRoot,    // argument of a root or logarithm, or a probability: must be in (0, 1), or the result
              // may be NaN
    kBase,    // like kRoot, if the exponent (argument `of`) is not a non-negative integer
    kWeight,  // a weight: sums over its rows should stay near one
  };
  Bound bound = Bound::kRows;
  int of = 0;
  int dim = 0;
};

// Returns whether the size of a result depends on the values.
bool DecidesSize(ValueDemand::Bound bound);

// Returns the table of demands, by operator.
std::span<const ValueDemand> ValueDemands();

// Returns how to fill `tensor`, the argument of call `node` that `demand` restricts; for a list,
// its element `element`. nullopt if the call's arguments are insufficient.
std::optional<FillRule> RuleOf(const Trace& trace, NodeId node, const ValueDemand& demand,
                               size_t element, TensorId tensor);

}  // namespace etude
