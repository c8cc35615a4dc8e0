#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/standalone/memory_fill.h"

namespace etude {

// After so many, floats are filled with the same again: as good for timing and as quick as a copy.
// Prime, so that rows of usual lengths differ.
inline constexpr size_t kRepeatedFloats = 65521;

// Floats: normal, uniform, or a single 1.
void FillFloats(std::span<float> out, const MemoryFill& fill, uint64_t seed);
// `recorded`: the elements that the program had there, of kSteps their sums, which are taken as
// they are. Null, or of another length: ignored.
void FillIntegers(std::span<int64_t> out, const MemoryFill& fill,
                  const std::vector<int64_t>* recorded, uint64_t seed);
// In [0, 128), as kBytes says.
void FillBytes(std::span<uint8_t> out, uint64_t seed);
void FillBools(std::span<uint8_t> out, const MemoryFill& fill, uint64_t seed);

}  // namespace etude
