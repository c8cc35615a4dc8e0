#include "src/jobs/rank_list.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "src/base/text/quantity.h"

namespace etude {
namespace {

// Parses a list of some of `ranks`. Returns nullopt if it is not a list.
std::optional<std::vector<int64_t>> RanksInList(std::string_view list,
                                                std::span<const int64_t> ranks) {
  const auto listed = ParseRanges(list, ranks.back());
  if (!listed) return std::nullopt;
  std::set<int64_t> chosen;
  for (const int64_t rank : *listed) {
    if (!std::ranges::binary_search(ranks, rank) || !chosen.insert(rank).second) {
      return std::nullopt;
    }
  }
  return std::vector<int64_t>(chosen.begin(), chosen.end());
}

}  // namespace

Result<std::vector<int64_t>> ChooseFromRanks(std::string_view text, std::span<const int64_t> ranks,
                                             std::string_view whose) {
  if (text == "all") return std::vector<int64_t>(ranks.begin(), ranks.end());
  if (const auto count = ParseWhole(text)) {
    if (*count >= 1 && static_cast<uint64_t>(*count) <= ranks.size()) {
      return std::vector<int64_t>(ranks.begin(), ranks.begin() + *count);
    }
  } else if (auto listed = RanksInList(text, ranks)) {
    return *std::move(listed);
  }
  std::string expected = fmt::format("all or 1: {} has one rank", whose);
  if (ranks.size() > 1) {
    expected = fmt::format("all, a number from 1 to {}, or a list of ranks as {},{}", ranks.size(),
                           ranks.front(), ranks.back());
  }
  return MakeError(ErrorCode::kUsage,
                   fmt::format("--ranks: found '{}', expected {}", text, expected));
}

}  // namespace etude
