#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/analysis/health.h"
#include "src/analysis/time/breakdown.h"
#include "src/analysis/view/timeline.h"
#include "src/report/page/chart.h"
#include "src/report/text/table.h"
#include "src/run/rank_run.h"
#include "src/trace/trace.h"

namespace etude {

// Figures of one rank for a page. Independent of the traces.
struct RankFigures {
  struct Part {
    std::vector<Table> tables;  // the same keys and columns for every rank
    std::vector<std::string> notes;
  };

  std::optional<int64_t> rank;
  std::string path;
  std::string kind;  // of the trace
  uint64_t nodes = 0;
  Health health;
  bool on_device = false;           // the breakdown is of devices
  std::optional<TimeShares> times;  // of all work of the rank
  Part operators;
  Part steps;
  Part critical_path;
  Part memory;
  Chart memory_lines;
  std::optional<Bytes> peak;
  Timeline timeline;
  CommLog comms;
  std::optional<RankRun> run;  // nullopt: the graph time is unknown
};

// Computes the figures. `trace`: the rank's most complete trace. `timed`: the trace with the best
// times, if it is another one; may be null. `most_events`: maximum for the timeline.
RankFigures FiguresOf(const Trace& trace, const Trace* timed, size_t most_events);

// Removes rows that no page shows, to save memory before all ranks are joined.
std::vector<Table> CutForPage(std::vector<Table> tables);

}  // namespace etude
