#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "src/replay/values/fill_rule.h"
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
    kMaskOfResult,  // as many true, or other than 0, as the result has rows
    kMaskOfArg,     // as many true as argument `of` has elements
    kDistinct,      // as many different values as the result has rows
    kHighest,       // index below dimension `dim` of the result, the last one being there
    kDivisor,       // must not be 0
    kPositive,      // should be above 0: a variance, a scale
    kRoot,          // must be in (0, 1), or the result may be no number: of what a root or
                    // logarithm is, a probability
    kBase,          // the same where the exponent, argument `of`, is no whole number from 0 on
    kWeight,        // a weight: sums over rows of it should stay near one
  };
  Bound bound = Bound::kRows;
  int of = 0;
  int dim = 0;
};

// Whether the size of a result depends on the values.
bool DecidesSize(ValueDemand::Bound bound);

// The table of demands, by operator.
std::span<const ValueDemand> ValueDemands();

// How to fill `tensor`, an argument of call `node` that `demand` is about, of a list its element
// number `element`; nullopt where the call's arguments do not tell.
std::optional<FillRule> RuleOf(const Trace& trace, NodeId node, const ValueDemand& demand,
                               size_t element, TensorId tensor);

}  // namespace etude
