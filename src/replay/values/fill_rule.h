#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/standalone/memory_fill.h"

namespace etude {

// Required content of memory from outside of the step.
struct FillRule {
  enum class Kind : uint8_t {
    kDefault,   // by type: floats normal, bools random, bytes random, other integers 1
    kWeight,    // floats: normal with variance 1 / (elements per row), for numeric stability
    kPositive,  // floats: uniform in [0.5, 1): variances, denominators, subtrahends of 1
    kIndex,     // integers: in [low, high), by Zipf's law with the exponent `skew`
    kOffsets,   // integers: ascending from 0, at most `high`, evenly spread
    kSteps,     // integers: differences of kOffsets, so that their running sums are offsets
    kLengths,   // integers: descending, first `low`, sum `high`
    kMask,      // `high` elements true or 1, the others 0
    kDistinct,  // numbers: ascending, each of `low` … `high` - 1 at least once
    kConstant,  // integers: `low`
  };
  Kind kind = Kind::kDefault;
  int64_t low = 0;
  int64_t high = 0;
  double skew = 0;  // 0: uniform
  // Recorded elements, in order, for kIndex and kOffsets; for kSteps the elements of their running
  // sums. Used if their number fits.
  std::shared_ptr<const std::vector<int64_t>> recorded = nullptr;

  friend bool operator==(const FillRule&, const FillRule&) = default;
};

// Element types that a fill distinguishes.
enum class FilledElement : uint8_t { kBool, kByte, kInteger, kFloat };

// Returns the fill for memory of `elements` elements, used as a tensor of `sizes`.
MemoryFill FillBy(const FillRule& rule, FilledElement element, int64_t elements,
                  std::span<const int64_t> sizes);

}  // namespace etude
