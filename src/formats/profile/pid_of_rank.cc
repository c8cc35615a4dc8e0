#include "src/formats/profile/pid_of_rank.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/text/ascii.h"
#include "src/base/text/quantity.h"

namespace etude {
namespace {

bool IsWhole(std::string_view text) { return !text.empty() && std::ranges::all_of(text, IsDigit); }

// Reads "[TP00] 100" and "[TP00 100]".
std::optional<PidOfRank> InBrackets(std::string_view pid) {
  const size_t close = pid.find(']');
  if (!pid.starts_with('[') || close == std::string_view::npos) return std::nullopt;
  const std::string_view inside = pid.substr(1, close - 1);
  if (close + 1 < pid.size()) {
    if (inside.empty()) return std::nullopt;
    return PidOfRank{std::string(pid.substr(0, close + 1)), Trimmed(pid.substr(close + 1))};
  }
  const size_t space = inside.rfind(' ');
  if (space == std::string_view::npos || !IsWhole(inside.substr(space + 1))) return std::nullopt;
  return PidOfRank{fmt::format("[{}]", Trimmed(inside.substr(0, space))), inside.substr(space + 1)};
}

// Reads "rank0_100", "rank_0_100", "Rank 0: 100" and "Rank 0".
std::optional<PidOfRank> BehindRank(std::string_view pid) {
  constexpr std::string_view kRank = "rank";
  const auto same = [](char a, char b) { return Lower(a) == b; };
  if (pid.size() < kRank.size() || !std::ranges::equal(pid.substr(0, kRank.size()), kRank, same)) {
    return std::nullopt;
  }
  size_t begin = kRank.size();
  while (begin < pid.size() && !IsDigit(pid[begin]) && !IsLetter(pid[begin])) ++begin;
  size_t end = begin;
  while (end < pid.size() && IsDigit(pid[end])) ++end;
  if (end == begin || begin > kRank.size() + 1) return std::nullopt;
  const std::string owner = fmt::format("rank {}", pid.substr(begin, end - begin));
  if (end == pid.size()) return PidOfRank{owner, ""};
  if (IsLetter(pid[end])) return std::nullopt;
  while (end < pid.size() && !IsDigit(pid[end]) && !IsLetter(pid[end])) ++end;
  return PidOfRank{owner, pid.substr(end)};
}

// Reads "100_3".
std::optional<PidOfRank> BeforeRank(std::string_view pid) {
  const size_t line = pid.find('_');
  if (line == std::string_view::npos || !IsWhole(pid.substr(0, line)) ||
      !IsWhole(pid.substr(line + 1))) {
    return std::nullopt;
  }
  return PidOfRank{fmt::format("rank {}", pid.substr(line + 1)), pid.substr(0, line)};
}

}  // namespace

std::optional<PidOfRank> ReadPidOfRank(std::string_view pid) {
  for (const auto read : {InBrackets, BehindRank, BeforeRank}) {
    if (auto found = read(pid)) return found;
  }
  return std::nullopt;
}

}  // namespace etude
