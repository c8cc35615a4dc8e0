#include "src/report/tables/graph_time_tables.h"

#include <string_view>

#include <fmt/format.h>

#include "src/report/text/format.h"

namespace etude {

std::vector<Table> GraphTimeTables(const GraphTime& time, size_t ranks) {
  Table summary{.key = "recorded",
                .title = "step time from the graph",
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
             .title = "sources of the difference along the longest chain",
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
  add(time.untimed, "operators and device work without times, ignored");
  add(time.contradictions, "dependencies that contradict times, ignored");
  add(time.apart,
      "communications that ended on some ranks before others began (asynchronous calls), which "
      "take their recorded times");
  add(time.unaligned,
      "communications of ranks whose clocks cannot be compared, which take their recorded times");
  return notes;
}

}  // namespace etude
