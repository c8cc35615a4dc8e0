#include "src/base/align.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <unordered_map>

#include "src/base/container/hash.h"

namespace etude {
namespace {

constexpr size_t kLongestRun = 8;
// Max differences between sequences; beyond this they do not match and the search is too slow.
constexpr int64_t kMaxDifferences = 2000;
// Offsets with this share of the best offset's votes count as equally good.
constexpr double kAsGood = 0.9;
// Max tokens compared to choose among offsets with equal votes.
constexpr size_t kMaxCompared = 50'000'000;

// `b` begins `offset` positions after the beginning of `a`; negative: before it.
struct Offset {
  int64_t offset = 0;
  bool ambiguous = false;
};

std::vector<uint64_t> RunHashes(std::span<const uint32_t> tokens, size_t length) {
  std::vector<uint64_t> hashes;
  for (size_t i = 0; i + length <= tokens.size(); ++i) {
    uint64_t hash = 0;
    for (size_t k = 0; k < length; ++k) hash = HashMix(hash, tokens[i + k] + 1);
    hashes.push_back(hash);
  }
  return hashes;
}

// Returns the number of tokens of `a` that `b` has `offset` positions further on.
size_t Agreeing(std::span<const uint32_t> a, std::span<const uint32_t> b, int64_t offset) {
  const size_t skip = offset < 0 ? static_cast<size_t>(-offset) : 0;
  if (skip >= a.size()) return 0;
  a = a.subspan(skip);
  const size_t begin = offset < 0 ? 0 : static_cast<size_t>(offset);
  if (begin >= b.size()) return 0;
  b = b.subspan(begin);
  size_t agreeing = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) agreeing += a[i] == b[i] ? 1 : 0;
  return agreeing;
}

// Lets each run of `length` tokens that occurs once in `a` vote for the offsets where `b` has it.
std::optional<Offset> Vote(std::span<const uint32_t> a, std::span<const uint32_t> b,
                           size_t length) {
  constexpr uint32_t kRepeated = UINT32_MAX;
  std::unordered_map<uint64_t, uint32_t> places;
  const std::vector<uint64_t> runs_a = RunHashes(a, length);
  for (size_t i = 0; i < runs_a.size(); ++i) {
    const auto [at, added] = places.emplace(runs_a[i], static_cast<uint32_t>(i));
    if (!added) at->second = kRepeated;
  }
  std::vector<uint32_t> votes(a.size() + b.size() + 1);
  uint32_t best = 0;
  const std::vector<uint64_t> runs_b = RunHashes(b, length);
  for (size_t j = 0; j < runs_b.size(); ++j) {
    const auto at = places.find(runs_b[j]);
    if (at == places.end() || at->second == kRepeated) continue;
    best = std::max(best, ++votes[j + a.size() - at->second]);
  }
  if (best == 0) return std::nullopt;
  // Among offsets with equal votes, prefer the one where more tokens agree, then the first one.
  // Others are rivals if they select another stretch of `b`.
  struct Candidate {
    int64_t offset;
    size_t agreeing;
  };
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < votes.size() && candidates.size() * a.size() < kMaxCompared; ++i) {
    if (static_cast<double>(votes[i]) < kAsGood * static_cast<double>(best)) continue;
    const int64_t offset = static_cast<int64_t>(i) - static_cast<int64_t>(a.size());
    candidates.push_back({offset, Agreeing(a, b, offset)});
  }
  const Candidate top = *std::ranges::max_element(candidates, {}, &Candidate::agreeing);
  Offset result{.offset = top.offset};
  for (const Candidate& other : candidates) {
    const bool elsewhere = std::abs(other.offset - top.offset) > static_cast<int64_t>(a.size() / 2);
    if (elsewhere &&
        static_cast<double>(other.agreeing) >= kAsGood * static_cast<double>(top.agreeing)) {
      result.ambiguous = true;
    }
  }
  return result;
}

// Computes the longest common subsequence with Myers' algorithm. Returns no pairs if it needs more
// than `max_differences` insertions and deletions.
std::vector<std::pair<uint32_t, uint32_t>> CommonSubsequence(std::span<const uint32_t> a,
                                                             std::span<const uint32_t> b,
                                                             int64_t max_differences) {
  const auto size_a = static_cast<int64_t>(a.size());
  const auto size_b = static_cast<int64_t>(b.size());
  max_differences = std::min(max_differences, size_a + size_b);
  // reach[k + max]: furthest position in `a` reached by the best path on diagonal k = i - j.
  const int64_t middle = max_differences + 1;
  std::vector<int32_t> reach(static_cast<size_t>(2 * middle + 1), 0);
  std::vector<std::vector<int32_t>> history;  // used part of `reach` before each round
  const auto at = [&](int64_t k) -> int32_t& { return reach[static_cast<size_t>(k + middle)]; };
  int64_t rounds = -1;
  for (int64_t d = 0; d <= max_differences && rounds < 0; ++d) {
    history.emplace_back(reach.begin() + (middle - d), reach.begin() + (middle + d + 1));
    for (int64_t k = -d; k <= d; k += 2) {
      const bool down = k == -d || (k != d && at(k - 1) < at(k + 1));
      int64_t i = down ? int64_t{at(k + 1)} : int64_t{at(k - 1)} + 1;
      int64_t j = i - k;
      while (i < size_a && j < size_b && a[static_cast<size_t>(i)] == b[static_cast<size_t>(j)]) {
        ++i;
        ++j;
      }
      at(k) = static_cast<int32_t>(i);
      if (i >= size_a && j >= size_b) {
        rounds = d;
        break;
      }
    }
  }
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  if (rounds < 0) return pairs;
  int64_t i = size_a;
  int64_t j = size_b;
  for (int64_t d = rounds; d >= 0; --d) {
    const std::vector<int32_t>& before = history[static_cast<size_t>(d)];
    const auto reached = [&](int64_t k) { return int64_t{before[static_cast<size_t>(k + d)]}; };
    const int64_t k = i - j;
    int64_t from_i = 0;
    int64_t from_j = 0;
    if (d > 0) {
      const bool down = k == -d || (k != d && reached(k - 1) < reached(k + 1));
      const int64_t from_k = down ? k + 1 : k - 1;
      from_i = reached(from_k);
      from_j = from_i - from_k;
    }
    const int64_t snake_i = d == 0 ? 0 : (from_i - from_j < k ? from_i + 1 : from_i);
    while (i > snake_i && j > 0) {
      --i;
      --j;
      pairs.emplace_back(static_cast<uint32_t>(i), static_cast<uint32_t>(j));
    }
    i = from_i;
    j = from_j;
  }
  std::ranges::reverse(pairs);
  return pairs;
}

// Moves a matched token next to its neighbour's match where both positions are possible, later
// neighbours first. Among subsequences of equal length, the one with the fewest gaps is likely
// right.
void CloseGaps(std::span<const uint32_t> a, std::span<const uint32_t> b,
               std::vector<std::pair<uint32_t, uint32_t>>& pairs) {
  for (size_t k = pairs.size(); k-- > 1;) {
    const auto [next_i, next_j] = pairs[k];
    auto& [i, j] = pairs[k - 1];
    if (i + 1 == next_i && j + 1 < next_j && b[next_j - 1] == a[i]) j = next_j - 1;
    if (j + 1 == next_j && i + 1 < next_i && a[next_i - 1] == b[j]) i = next_i - 1;
  }
  for (size_t k = 1; k < pairs.size(); ++k) {
    const auto [last_i, last_j] = pairs[k - 1];
    auto& [i, j] = pairs[k];
    if (i == last_i + 1 && j > last_j + 1 && b[last_j + 1] == a[i]) j = last_j + 1;
    if (j == last_j + 1 && i > last_i + 1 && a[last_i + 1] == b[j]) i = last_i + 1;
  }
}

}  // namespace

Alignment Align(std::span<const uint32_t> a, std::span<const uint32_t> b) {
  Alignment result;
  if (a.empty() || b.empty()) return result;
  Offset offset;
  bool voted = false;
  for (size_t length = std::min(kLongestRun, a.size()); length > 0 && !voted; length /= 2) {
    if (const auto vote = Vote(a, b, length)) {
      offset = *vote;
      voted = true;
    }
  }
  const auto size_a = static_cast<int64_t>(a.size());
  const auto size_b = static_cast<int64_t>(b.size());
  const int64_t slack = 32 + size_a / 64;
  int64_t begin = 0;
  int64_t end = size_b;
  if (voted) {
    begin = std::clamp(offset.offset - slack, int64_t{0}, size_b);
    end = std::clamp(offset.offset + size_a + slack, begin, size_b);
    result.ambiguous = offset.ambiguous;
  } else {
    // No run of `a` is unique: align only sequences of about the same length.
    if (size_b > size_a + slack || size_a > size_b + slack) return result;
    result.ambiguous = size_a != size_b;
  }
  const auto stretch = b.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  const int64_t max_differences = std::min(kMaxDifferences, 2 * slack + size_a / 2);
  result.pairs = CommonSubsequence(a, stretch, max_differences);
  CloseGaps(a, stretch, result.pairs);
  for (auto& pair : result.pairs) pair.second += static_cast<uint32_t>(begin);
  return result;
}

std::optional<std::vector<std::pair<uint32_t, uint32_t>>> AlignWhole(std::span<const uint32_t> a,
                                                                     std::span<const uint32_t> b) {
  auto pairs = CommonSubsequence(a, b, kMaxDifferences);
  const auto differences = static_cast<int64_t>(a.size() + b.size() - 2 * pairs.size());
  if (differences > kMaxDifferences) return std::nullopt;
  CloseGaps(a, b, pairs);
  return pairs;
}

}  // namespace etude
