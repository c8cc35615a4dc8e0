#pragma once

#include <cstdint>

namespace etude {

// What memory is filled with that is there before a step.
struct MemoryFill {
  enum class Kind : uint8_t {
    kNormal,    // floats: mean 0, deviation `real`
    kUniform,   // floats: in [0.5, 1)
    kConstant,  // integers: `low`; a single float: 1, whatever `low` is
    kBytes,     // integers: in [0, 128)
    kIndex,     // integers: in [low, high), by Zipf's law with the exponent `real`
    kOffsets,   // integers: ascending from 0, at most `high`, evenly spread; `low` 1: with the end
    kSteps,     // integers: the differences of kOffsets
    kLengths,   // integers: descending, first `low`, sum `high`
    kMask,      // `high` of them true, or 1 and the others 0
    kDistinct,  // numbers: ascending, each of `low` … `high` - 1 at least once
    kCoin,      // bools: at random
  };
  Kind kind = Kind::kConstant;
  double real = 0;
  int64_t low = 0;
  int64_t high = 0;
};

}  // namespace etude
