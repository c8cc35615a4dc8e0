#include "src/report/page/rank_figures.h"

#include <algorithm>
#include <utility>

#include "src/analysis/memory/memory_use.h"
#include "src/analysis/time/critical_path.h"
#include "src/analysis/view/trace_stats.h"
#include "src/report/page/page.h"
#include "src/report/tables/breakdown_tables.h"
#include "src/report/tables/critical_path_tables.h"
#include "src/report/tables/memory_tables.h"
#include "src/report/tables/stats_tables.h"
#include "src/run/rank_run.h"

namespace etude {
namespace {

void AddMemory(const Trace& trace, const Trace* timed, RankFigures& figures) {
  MemoryFigures memory = FindMemory(trace, timed);
  figures.memory.notes = std::move(memory.notes);
  for (const MemorySource& source : memory.sources) {
    for (const DeviceMemory& one : source.devices) {
      figures.peak = std::max(figures.peak.value_or(Bytes{}), one.peak);
    }
  }
  std::vector<Table> tables = MemoryTables(memory.sources);
  figures.memory_lines = Steps(tables.back(), {.title = "memory in use",
                                               .series = {"device", "source"},
                                               .time = "time_ns",
                                               .value = "bytes"});
  tables.pop_back();  // the timeline: a row per allocation
  figures.memory.tables = CutForPage(std::move(tables));
}

}  // namespace

std::vector<Table> CutForPage(std::vector<Table> tables) {
  for (Table& table : tables) {
    if (table.rows.size() <= kMostPageRows) continue;
    table.left_out += table.rows.size() - kMostPageRows;
    table.rows.resize(kMostPageRows);
  }
  return tables;
}

RankFigures FiguresOf(const Trace& trace, const Trace* timed, size_t most_events) {
  const Trace& clocked = timed != nullptr ? *timed : trace;
  RankFigures figures;
  figures.rank = trace.info().rank ? trace.info().rank : clocked.info().rank;
  const RecordedRun trace_run(trace);
  const RecordedRun timed_run(clocked);
  const RecordedRun& clocked_run = timed != nullptr ? timed_run : trace_run;
  RankRun run = MakeRankRun(clocked_run, figures.rank.value_or(0));
  Health clocked_health = JudgeTrace(clocked_run, run);
  figures.kind = Name(trace.info().format);
  figures.nodes = trace.node_count();
  figures.operators.tables = CutForPage(StatsTables(CountTrace(trace_run)));
  const Breakdown breakdown = BreakDown(clocked_run);
  figures.on_device = breakdown.on_device;
  figures.times = breakdown.whole;
  figures.steps = {CutForPage(BreakdownTables(breakdown)), BreakdownNotes(breakdown)};
  const CriticalPath path = FindCriticalPath(clocked_run);
  figures.critical_path = {CutForPage(CriticalPathTables(clocked, path)), CriticalPathNotes(path)};
  AddMemory(trace, timed, figures);
  figures.timeline = MakeTimeline(clocked, most_events);
  figures.comms = run.log;
  if (clocked_health.graph_time) figures.run = std::move(run);
  if (timed == nullptr) {
    figures.health = std::move(clocked_health);
    return figures;
  }
  RankRun other = MakeRankRun(trace_run, figures.rank.value_or(0));
  figures.health = JudgeTrace(trace_run, other);
  figures.health.Add(clocked_health, "device trace");
  figures.comms = std::move(other.log);
  return figures;
}

}  // namespace etude
