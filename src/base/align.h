#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace etude {

// Which places of one sequence stand for which of another.
struct Alignment {
  std::vector<std::pair<uint32_t, uint32_t>> pairs;  // ascending in both
  // `b` has several stretches that fit `a` about as well; the first of the best was taken.
  bool ambiguous = false;
};

// Finds `a` in `b`, which may be longer (a recording of many steps of which `a` has one) or differ
// here and there: first the offset at which they agree best, by the runs of tokens that `a` has
// once, then the longest common subsequence near that offset. No pairs if they have too little in
// common. O((|a| + |b|) · differences), and the differences are bounded.
Alignment Align(std::span<const uint32_t> a, std::span<const uint32_t> b);

// The longest common subsequence of both; nullopt if more than 2,000 insertions and deletions make
// one of the other. O((|a| + |b|) · differences).
std::optional<std::vector<std::pair<uint32_t, uint32_t>>> AlignWhole(std::span<const uint32_t> a,
                                                                     std::span<const uint32_t> b);

}  // namespace etude
