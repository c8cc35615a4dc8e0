#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace etude {

// Correspondence between the positions of two sequences.
struct Alignment {
  std::vector<std::pair<uint32_t, uint32_t>> pairs;  // ascending in both
  // True if several stretches of `b` match `a` about equally well; the first of the best is used.
  bool ambiguous = false;
};

// Aligns `a` with `b`. `b` may be longer (a recording of many steps where `a` has one) or differ in
// places. Finds the best offset from the token runs that occur once in `a`, then the longest common
// subsequence near that offset. Returns no pairs if the sequences have too little in common. O((|a|
// + |b|) · differences), and the number of differences is bounded.
Alignment Align(std::span<const uint32_t> a, std::span<const uint32_t> b);

// Returns the longest common subsequence, or nullopt if turning one sequence into the other takes
// more than 2,000 insertions and deletions. O((|a| + |b|) · differences).
std::optional<std::vector<std::pair<uint32_t, uint32_t>>> AlignWhole(std::span<const uint32_t> a,
                                                                     std::span<const uint32_t> b);

}  // namespace etude
