#include "src/report/tables/comm_tables.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/report/text/format.h"

namespace etude {
namespace {

Table Shares(const CommSkew& skew) {
  Table table{.key = "skew",
              .title = "skew (waiting for the last rank) and transfer, by rank",
              .columns = {{"rank", "rank", Unit::kText},
                          {"type", "type", Unit::kText},
                          {"group", "group", Unit::kText},
                          {"count", "count", Unit::kCount},
                          {"last", "was last", Unit::kCount},
                          {"skew_ns", "skew", Unit::kTime},
                          {"transfer_ns", "transfer", Unit::kTime},
                          {"skew_share", "skew share", Unit::kShare}},
              .rows = {}};
  for (const CommSkew::RankShare& row : skew.ranks) {
    table.rows.push_back({row.rank, row.type, row.group, CountCell(row.count), CountCell(row.last),
                          row.skew.count, row.transfer.count,
                          ShareCell(row.skew, row.skew + row.transfer)});
  }
  return table;
}

Table Slowest(const CommSkew& skew) {
  Table table{.key = "slowest",
              .title = "individual collectives, largest skew first",
              .columns = {{"call", "collective", Unit::kText},
                          {"ranks", "ranks", Unit::kCount},
                          {"bytes", "size", Unit::kBytes},
                          {"last_rank", "last rank", Unit::kNumber},
                          {"node", "last node", Unit::kNumber},
                          {"skew_ns", "skew", Unit::kTime},
                          {"transfer_ns", "transfer", Unit::kTime}},
              .rows = {}};
  for (const CommSkew::Meeting& row : skew.meetings) {
    table.rows.push_back({row.call, CountCell(row.ranks), ToCell(row.bytes), row.last_rank,
                          CountCell(row.node), row.skew.count, row.transfer.count});
  }
  return table;
}

Table Clocks(const CommMatch& match) {
  Table table{.key = "clocks",
              .title = "clocks of the ranks, by the ends of collectives",
              .columns = {{"rank", "rank", Unit::kText},
                          {"offset_ns", "ahead of the first", Unit::kTime},
                          {"spread_ns", "±", Unit::kTime},
                          {"meetings", "collectives", Unit::kCount},
                          {"reason", "why unknown", Unit::kText}},
              .rows = {}};
  for (const ClockOffset& clock : match.clocks) {
    table.rows.push_back({clock.rank, ToCell(clock.ahead()), clock.spread.count,
                          CountCell(clock.meetings),
                          clock.reason.empty() ? Cell() : Cell(clock.reason)});
  }
  return table;
}

}  // namespace

std::vector<Table> CommTables(const CommSkew& skew, const CommMatch& match) {
  return {Shares(skew), Slowest(skew), Clocks(match)};
}

std::vector<std::string> CommNotes(const CommSkew& skew, const CommMatch& match) {
  std::vector<std::string> notes;
  if (match.one_clock) notes.emplace_back("the job was simulated: its ranks have one clock");
  if (match.one_machine) notes.emplace_back("the ranks ran on one machine with one clock");
  const auto note = [&](uint64_t count, std::string_view what) {
    if (count == 0) return;
    notes.push_back(fmt::format("{} not split{}",
                                FormatCount(count, "collective is", "collectives are"), what));
  };
  note(skew.unaligned, " into skew and transfer: the clock of a member cannot be compared");
  note(skew.untimed, ": a member has no times");
  note(skew.alone, ": only one member has a trace");
  if (match.unmatched != 0) {
    notes.push_back(
        FormatCount(match.unmatched, "collective or other call", "collectives and other calls") +
        " without a match on other ranks");
  }
  if (!match.missing_ranks.empty() && !skew.meetings.empty()) {
    notes.push_back(
        fmt::format("{} last; skew is a lower bound",
                    FormatCount(match.missing_ranks.size(), "rank has no trace and may have been",
                                "ranks have no trace and may have been")));
  }
  if (!skew.meetings.empty()) {
    const auto widest = std::ranges::max_element(match.clocks, {}, &ClockOffset::spread);
    if (widest->spread.count > 0) {
      notes.push_back(fmt::format(
          "clock offsets are uncertain by ± {} (rank {}): smaller skew is not significant",
          FormatTime(widest->spread), widest->rank));
    }
  }
  return notes;
}

}  // namespace etude
