#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace etude {

// Part of a sequence that repeats itself: each token equals the one a period before.
struct RepeatedRun {
  size_t begin = 0;
  size_t length = 0;  // in tokens; not necessarily a multiple of the period
  size_t period = 0;

  size_t count() const { return length / period; }
  friend bool operator==(const RepeatedRun&, const RepeatedRun&) = default;
};

// Returns the longest runs of at least two periods, by their begin, then by their period. A run of
// "abab" with period 4 in "abababab" is left out, as its period is a multiple of 2.
//
// Periods are those at which some token returns, up to its 16th return; only the 512 most frequent
// ones are tried. O(n) for each.
std::vector<RepeatedRun> FindRepeatedRuns(std::span<const uint32_t> tokens);

}  // namespace etude
