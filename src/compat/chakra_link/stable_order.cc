#include "src/compat/chakra_link/stable_order.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace etude::compat {

std::vector<uint32_t> StableOrder(const std::vector<uint64_t>& keys) {
  std::vector<uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0U);
  if (std::ranges::is_sorted(keys)) return order;
  const auto [low, high] = std::ranges::minmax(keys);
  constexpr int kBits = 11;
  constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;
  std::vector<uint32_t> next(order.size());
  for (int shift = 0; shift < 64 && ((high - low) >> shift) != 0; shift += kBits) {
    std::array<uint32_t, (size_t{1} << kBits) + 1> begin{};
    for (const uint64_t key : keys) ++begin[(((key - low) >> shift) & kMask) + 1];
    for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    for (const uint32_t place : order) {
      next[begin[((keys[place] - low) >> shift) & kMask]++] = place;
    }
    order.swap(next);
  }
  return order;
}

}  // namespace etude::compat
