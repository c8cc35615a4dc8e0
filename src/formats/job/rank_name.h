#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace etude {

// What the name of a trace file says of the process that the trace is of.
struct RankName {
  // The rank, where the name says that it is one: rank-3.json, worker3_…, host.3.json, x.3.et.
  std::optional<int64_t> rank;
  // A number that is the rank only where the names of the files beside it count from 0:
  // kineto_trace_3.json, x_tp_rank3.json. Never one that counts steps.
  std::optional<int64_t> number;
  // A time in the name, of any clock: what tools write that record again and again.
  std::optional<int64_t> time;
  // The name without rank, number, time and compression: the same for the files of one recording.
  std::string series;
};

RankName ReadRankName(std::string_view file_name);

// The rank that the name of a trace file says; nullopt if it says none.
std::optional<int64_t> RankFromName(std::string_view file_name);

// The ranks of several files by their names: what these say, else their numbers where those of
// all files of a series that say no rank count from 0, none twice and at least half of them there.
std::vector<std::optional<int64_t>> RanksFromNames(std::span<const RankName> names);

// Whether the numbers, each distinct, count from 0: at least two, and half of those up to the last.
bool CountFromZero(std::vector<int64_t> numbers);

// The order in which people count: rank_2 before rank_10.
bool ComesBefore(std::string_view a, std::string_view b);

// `name` without the ending of a compression.
std::string_view WithoutCompression(std::string_view name);

}  // namespace etude
