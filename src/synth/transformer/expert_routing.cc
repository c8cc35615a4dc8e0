#include "src/synth/transformer/expert_routing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>
#include <utility>

namespace etude {
namespace {

// Returns whole numbers with this sum, as close to the shares as possible, none above `most`.
std::vector<int64_t> Apportion(const std::vector<double>& shares, int64_t sum, int64_t most) {
  std::vector<int64_t> parts(shares.size());
  // An expert with more than all tokens gets all, and the others share the rest.
  std::vector<size_t> open(shares.size());
  std::iota(open.begin(), open.end(), size_t{0});
  int64_t left = sum;
  double of = 0;
  for (bool found = true; found;) {
    of = 0;
    for (const size_t i : open) of += shares[i];
    const auto full = [&, before = left](size_t i) {
      return static_cast<double>(before) * shares[i] >= static_cast<double>(most) * of;
    };
    found = std::erase_if(open, [&](size_t i) {
              if (shares[i] == 0 || !full(i)) return false;
              parts[i] = most;
              left -= most;
              return true;
            }) != 0;
  }
  // Largest remainders.
  std::vector<std::pair<double, size_t>> remainders;
  int64_t rest = left;
  for (const size_t i : open) {
    if (shares[i] == 0) continue;
    const double part = static_cast<double>(left) * shares[i] / of;
    parts[i] = static_cast<int64_t>(std::floor(part));
    rest -= parts[i];
    remainders.emplace_back(std::floor(part) - part, i);
  }
  std::ranges::sort(remainders);
  for (size_t i = 0; rest > 0 && !remainders.empty(); i = (i + 1) % remainders.size()) {
    ++parts[remainders[i].second];
    --rest;
  }
  return parts;
}

// The i-th most popular expert has a share of 1 / i^z; the ranking is random for each layer.
std::vector<double> ZipfShares(const ExpertsModel& experts, int64_t layer) {
  const auto count = static_cast<size_t>(experts.experts);
  std::vector<double> shares(count);
  for (size_t i = 0; i < count; ++i) {
    shares[i] = std::pow(static_cast<double>(i + 1), -experts.imbalance);
  }
  const auto seed = static_cast<uint64_t>(experts.seed);
  std::seed_seq seeds{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                      static_cast<uint32_t>(layer)};
  std::mt19937_64 random(seeds);
  // std::shuffle differs between standard libraries.
  for (size_t i = count; i > 1; --i) std::swap(shares[i - 1], shares[random() % i]);
  return shares;
}

}  // namespace

bool IsUneven(const ExpertsModel& experts) {
  return experts.imbalance != 0 || !experts.shares.empty();
}

std::vector<int64_t> RowsOfExperts(const ExpertsModel& experts, int64_t layer, int64_t tokens) {
  const double mean =
      static_cast<double>(tokens * experts.top_k) / static_cast<double>(experts.experts);
  if (!IsUneven(experts)) {
    const auto rows = static_cast<int64_t>(std::ceil(experts.capacity_factor.value_or(1) * mean));
    return std::vector<int64_t>(static_cast<size_t>(experts.experts), rows);
  }
  std::vector<int64_t> rows =
      Apportion(experts.shares.empty() ? ZipfShares(experts, layer) : experts.shares,
                tokens * experts.top_k, tokens);
  if (experts.capacity_factor) {
    const auto capacity = static_cast<int64_t>(std::ceil(*experts.capacity_factor * mean));
    for (int64_t& row : rows) row = std::min(row, capacity);
  }
  return rows;
}

}  // namespace etude
