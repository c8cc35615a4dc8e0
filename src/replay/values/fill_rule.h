#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/standalone/memory_fill.h"

namespace etude {

// What values memory has to have that comes from outside of the step.
struct FillRule {
  enum class Kind : uint8_t {
    kDefault,   // by type: floats normal, bools random, bytes random, other integers 1
    kWeight,    // floats: normal with variance 1 / (elements per row), so that nothing explodes
    kPositive,  // floats: uniform in [0.5, 1): variances, denominators, what 1 is more than
    kIndex,     // integers: in [low, high), by Zipf's law with the exponent `skew`
    kOffsets,   // integers: ascending from 0, at most `high`, evenly spread
    kSteps,     // integers: from each of kOffsets' numbers to the next, so that they are their sums
    kLengths,   // integers: descending, first `low`, sum `high`
    kMask,      // `high` of them true, or 1 and the others 0
    kDistinct,  // numbers: ascending, each of `low` … `high` - 1 at least once
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

// What elements are to a fill.
enum class FilledElement : uint8_t { kBool, kByte, kInteger, kFloat };

// What a rule means for memory of so many `elements` that is seen as a tensor of `sizes`.
MemoryFill FillBy(const FillRule& rule, FilledElement element, int64_t elements,
                  std::span<const int64_t> sizes);

}  // namespace etude
