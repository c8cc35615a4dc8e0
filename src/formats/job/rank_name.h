#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace etude {

// Facts in the name of a trace file.
struct RankName {
  // The rank, if marked as one in the name: rank-3.json, worker3_…, host.3.json, x.3.et.
  std::optional<int64_t> rank;
  // A number that is the rank only if the names of the files beside it count from 0:
  // kineto_trace_3.json, x_tp_rank3.json. Never a number of steps.
  std::optional<int64_t> number;
  // A time in the name, by any clock, as written by tools that record repeatedly.
  std::optional<int64_t> time;
  // The name without rank, number, time and compression: the same for the files of one recording.
  std::string series;
};

RankName ReadRankName(std::string_view file_name);

// Returns the rank in the name of a trace file; nullopt if it has none.
std::optional<int64_t> RankFromName(std::string_view file_name);

// Returns the ranks of several files by their names. In a series without stated ranks, numbers are
// ranks if they count from 0, are distinct, and at least half of them are present.
std::vector<std::optional<int64_t>> RanksFromNames(std::span<const RankName> names);

// Returns true if the distinct numbers count from 0: at least two, and at least half of those up to
// the last.
bool CountFromZero(std::vector<int64_t> numbers);

// Compares in natural order: rank_2 before rank_10.
bool ComesBefore(std::string_view a, std::string_view b);

// Returns `name` without the ending of a compression.
std::string_view WithoutCompression(std::string_view name);

}  // namespace etude
