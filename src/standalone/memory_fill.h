#pragma once

#include <cstdint>

namespace etude {

// Initial content of memory that exists before a step.
struct MemoryFill {
  enum class Kind : uint8_t {
    kNormal,    // floats: mean 0, standard deviation `real`
    kUniform,   // floats: in [0.5, 1)
    kConstant,  // integers: `low`; a single float: 1, whatever `low` is
    kBytes,     // integers: in [0, 128)
    kIndex,     // integers: in [low, high), by Zipf's law with exponent `real`
    kOffsets,   // integers: ascending from 0 to at most `high`, evenly spread; `low` 1: including
                // the end
    kSteps,     // integers: differences of kOffsets
    kLengths,   // integers: descending, first one `low`, sum `high`
    kMask,      // `high` elements true or 1, the others 0
    kDistinct,  // numbers: ascending, each of `low` … `high` - 1 at least once
    kCoin,      // bools: random
  };
  Kind kind = Kind::kConstant;
  double real = 0;
  int64_t low = 0;
  int64_t high = 0;
};

}  // namespace etude
