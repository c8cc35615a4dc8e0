#include "src/replay/stuck_ranks.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace etude {
namespace {

// Returns the late partners of `status`, including those without a status.
std::vector<int64_t> WaitsFor(const RankStatus& status, int64_t own, const RankStatuses& all) {
  std::vector<int64_t> late;
  for (const int64_t partner : status.partners) {
    if (partner == own) continue;
    const auto other = all.find(partner);
    if (other == all.end()) {
      late.push_back(partner);
      continue;
    }
    const auto begun = other->second.begun.find(status.partners_channel);
    if (begun == other->second.begun.end() || begun->second < status.call) late.push_back(partner);
  }
  return late;
}

}  // namespace

std::string DescribeRanks(const RankStatuses& all, const std::vector<int64_t>& present) {
  constexpr size_t kShown = 16;
  std::map<int64_t, std::vector<int64_t>> waits;
  std::set<int64_t> awaited;
  for (const auto& [rank, status] : all) {
    waits[rank] = WaitsFor(status, rank, all);
    std::erase_if(waits[rank], [&](int64_t other) { return !std::ranges::count(present, other); });
    awaited.insert(waits[rank].begin(), waits[rank].end());
  }
  std::vector<int64_t> order(awaited.begin(), awaited.end());
  for (const int64_t rank : present) {
    if (!awaited.contains(rank)) order.push_back(rank);
  }
  std::string text;
  for (size_t i = 0; i < order.size() && i < kShown; ++i) {
    const auto status = all.find(order[i]);
    if (status == all.end()) {
      text += fmt::format("\n  rank {} does not answer: it stopped or is unreachable", order[i]);
      continue;
    }
    text += fmt::format("\n  rank {} is {}", order[i], status->second.doing);
    const std::vector<int64_t>& late = waits[order[i]];
    if (!late.empty()) {
      text +=
          fmt::format("; waits for rank{} {}", late.size() > 1 ? "s" : "", fmt::join(late, ","));
    }
  }
  if (order.size() > kShown) text += fmt::format("\n  and {} more ranks", order.size() - kShown);
  return text;
}

}  // namespace etude
