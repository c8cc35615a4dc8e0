#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/standalone/memory_fill.h"

namespace etude {

// After this many floats the values repeat, which is as good for timing and as fast as a copy. A
// prime, so that rows of usual lengths differ.
inline constexpr size_t kRepeatedFloats = 65521;

// Fills floats: normal, uniform, or a single 1.
void FillFloats(std::span<float> out, const MemoryFill& fill, uint64_t seed);
// Fills integers. `recorded`: the program's elements, which are used unchanged (for kSteps: the
// running sums). Null, or of another length: ignored.
void FillIntegers(std::span<int64_t> out, const MemoryFill& fill,
                  const std::vector<int64_t>* recorded, uint64_t seed);
// Fills bytes in [0, 128), see kBytes.
void FillBytes(std::span<uint8_t> out, uint64_t seed);
void FillBools(std::span<uint8_t> out, const MemoryFill& fill, uint64_t seed);

}  // namespace etude
