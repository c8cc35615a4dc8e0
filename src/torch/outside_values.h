#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "src/analysis/data_flow.h"
#include "src/analysis/recorded_step.h"

namespace etude {

// What memory that comes from outside of the step is filled with.
struct FillRule {
  enum class Kind : uint8_t {
    kDefault,   // by type: floats normal, bools random, bytes random, other integers 1
    kWeight,    // floats: normal with variance 1 / (elements per row), so that nothing explodes
    kPositive,  // floats: uniform in [0.5, 1.5): variances, denominators
    kIndex,     // integers: in [low, high), by Zipf's law with the exponent `skew`
    kOffsets,   // integers: ascending from 0, at most `high`, evenly spread
    kSteps,     // integers: from each of kOffsets' numbers to the next, so that they are their sums
    kLengths,   // integers: descending, first `low`, sum `high`
    kMask,      // bools: `high` of them true
    kConstant,  // integers: `low`
  };
  Kind kind = Kind::kDefault;
  int64_t low = 0;
  int64_t high = 0;
  double skew = 0;  // 0: all alike frequent
  // The recorded elements, in order, of kIndex and kOffsets, of kSteps those of their sums: taken
  // where they are as many as there is room for.
  std::shared_ptr<const std::vector<int64_t>> recorded = nullptr;

  friend bool operator==(const FillRule&, const FillRule&) = default;
};

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
    kConstant,      // the number `dim`
    kDivisor,       // must not be 0
    kPositive,      // must be above 0
    kWeight,        // a weight: sums over rows of it should stay near one
  };
  Bound bound = Bound::kRows;
  int of = 0;
  int dim = 0;
};

// The table of demands, by operator.
std::span<const ValueDemand> ValueDemands();

// For each storage version of the step how to fill it, should it have to be made. A demand on an
// argument goes back from where it is read over views and over operators that only move values
// (copies, cat, gather …) to the memory the values come from; a demand for offsets also over sums
// of lengths.
std::vector<FillRule> InferFillRules(const RecordedStep& step, const DataFlow& flow);

}  // namespace etude
