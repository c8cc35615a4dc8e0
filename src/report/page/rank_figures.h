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

// What a page says of one rank. Needs the traces no more.
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
  bool on_device = false;           // what the breakdown is of
  std::optional<TimeShares> times;  // of all its work
  Part operators;
  Part steps;
  Part critical_path;
  Part memory;
  Chart memory_lines;
  std::optional<Bytes> peak;
  Timeline timeline;
  CommLog comms;
  std::optional<RankRun> run;  // nullopt: the time by its graph is unknown
};

// `trace` is the richest trace of the rank; `timed` the one that tells most of times, if that is
// another one. `most_events`: of its timeline.
RankFigures FiguresOf(const Trace& trace, const Trace* timed, size_t most_events);

// Cuts what no page shows, before the tables of all ranks are held at once.
std::vector<Table> CutForPage(std::vector<Table> tables);

}  // namespace etude
