#pragma once

#include <cstdint>
#include <span>

#include "src/replay/fill_rule.h"

namespace etude {

// Normal numbers with mean 0 and the given deviation. Long spans repeat a block of a prime number
// of values, which is as good for timing and as quick as a copy.
void FillNormal(std::span<float> out, float deviation, uint64_t seed);
void FillUniform(std::span<float> out, float low, float high, uint64_t seed);

// Integers by a rule of kind kIndex, kOffsets, kSteps, kLengths or kConstant.
void FillIntegers(std::span<int64_t> out, const FillRule& rule, uint64_t seed);
// Bools: rule.high of them true for kMask, else at random.
void FillBools(std::span<uint8_t> out, const FillRule& rule, uint64_t seed);

}  // namespace etude
