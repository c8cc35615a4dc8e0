#include "src/report/tables/graph_time_tables.h"

#include <string_view>

#include <fmt/format.h>

#include "src/report/text/format.h"

namespace etude {

std::vector<Table> GraphTimeTables(const GraphTime& time, size_t ranks) {
  Table summary{.key = "recorded",
                .title = "step by the graph alone",
                .columns = {{"ranks", "ranks", Unit::kCount},
                            {"recorded_ns", "recorded", Unit::kTime},
                            {"simulated_ns", "simulated", Unit::kTime},
                            {"error", "difference", Unit::kChange},
                            {"nodes", "nodes", Unit::kCount},
                            {"joint", "joint communications", Unit::kCount}},
                .rows = {}};
  summary.rows.push_back({CountCell(ranks), time.recorded.count, time.simulated.count,
                          time.recorded.count > 0 ? Cell(time.error()) : Cell(),
                          CountCell(time.nodes), CountCell(time.joint)});
  Table gaps{.key = "gaps",
             .title = "where the difference arises, along the longest chain",
             .columns = {{"kind", "kind", Unit::kText},
                         {"rank", "rank", Unit::kNumber},
                         {"lane", "on", Unit::kText},
                         {"count", "count", Unit::kCount},
                         {"time_ns", "time", Unit::kTime},
                         {"share", "of the recorded step", Unit::kShare}},
             .rows = {}};
  for (const GraphTime::Gap& gap : time.gaps) {
    gaps.rows.push_back({std::string(Name(gap.kind)), gap.rank, gap.lane, CountCell(gap.count),
                         gap.time.count, ShareCell(gap.time, time.recorded)});
  }
  return {std::move(summary), std::move(gaps)};
}

std::string GraphTimeText(const GraphTime& time) {
  return fmt::format("{} of {} ({})", FormatTime(time.simulated), FormatTime(time.recorded),
                     FormatError(time.error()));
}

std::vector<std::string> GraphTimeNotes(const GraphTime& time) {
  std::vector<std::string> notes;
  const auto add = [&](uint64_t count, std::string_view what) {
    if (count > 0) notes.push_back(fmt::format("{}: {}", what, FormatCount(count)));
  };
  add(time.untimed, "operators and works without times, which are not in it");
  add(time.contradictions, "dependencies that times deny, which are not in it");
  add(time.apart,
      "communications that some ranks had ended before others began: calls that do not "
      "wait, which take their own times");
  add(time.unaligned,
      "communications of ranks whose clocks cannot be compared, which take their "
      "own times");
  return notes;
}

}  // namespace etude
