#include "src/report/inspections.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/formats/read_trace.h"
#include "src/report/recording_cost.h"
#include "src/report/tables/breakdown_tables.h"
#include "src/report/tables/critical_path_tables.h"
#include "src/report/tables/diff_tables.h"
#include "src/report/tables/memory_tables.h"
#include "src/report/tables/stats_tables.h"
#include "src/report/text/format.h"
#include "src/run/rank_run.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

Result<Inspected> InspectStats(const RecordedRun& run, const RankInput&, const ReadOptions&,
                               const RunContext&) {
  return Inspected{.tables = StatsTables(CountTrace(run))};
}

Result<Inspected> InspectBreakdown(const RecordedRun& run, const RankInput&, const ReadOptions&,
                                   const RunContext&) {
  const Breakdown breakdown = BreakDown(run);
  return Inspected{.tables = BreakdownTables(breakdown), .notes = BreakdownNotes(breakdown)};
}

Result<Inspected> InspectCriticalPath(const RecordedRun& run, const RankInput&, const ReadOptions&,
                                      const RunContext&) {
  const CriticalPath path = FindCriticalPath(run);
  return Inspected{.tables = CriticalPathTables(run.trace(), path),
                   .notes = CriticalPathNotes(path)};
}

// The host trace contains tensors, the device trace contains allocator events.
RankInput HostAndDevice(const CaptureRank& rank) {
  if (rank.host.empty()) return RichestInput(rank);
  return {.rank = rank.rank, .path = rank.host, .device = rank.device};
}

Result<Inspected> InspectMemory(const RecordedRun& run, const RankInput& input,
                                const ReadOptions& read, const RunContext& context) {
  std::optional<Trace> device;
  if (!input.device.empty()) {
    ETUDE_ASSIGN_OR_RETURN(device, ReadTrace(input.device, read, context));
  }
  MemoryFigures memory = FindMemory(run.trace(), device ? &*device : nullptr);
  return Inspected{.tables = MemoryTables(memory.sources), .notes = std::move(memory.notes)};
}

}  // namespace

std::span<const Inspection> Inspections() {
  static const Inspection kInspections[] = {
      {.name = "stats",
       .summary =
           "count operators, modules, lanes and communication of a trace, with times and sizes",
       .tables = kStatsTables,
       .choose = RichestInput,
       .inspect = InspectStats},
      {.name = "breakdown",
       .summary = "split each step's time into compute, communication, copies and idle",
       .tables = kBreakdownTables,
       .choose = TimedInput,
       .inspect = InspectBreakdown},
      {.name = "critical-path",
       .summary = "find the longest chain of dependent work and how it spends its time",
       .tables = kCriticalPathTables,
       .choose = TimedInput,
       .inspect = InspectCriticalPath},
      {.name = "memory",
       .summary = "show the memory of a step's tensors: use over time, peak, and what holds it",
       .tables = kMemoryTables,
       .choose = HostAndDevice,
       .inspect = InspectMemory,
       .of_times = false},
  };
  return kInspections;
}

Result<Inspected> Inspect(const Inspection& inspection, const Trace& trace, const RankInput& input,
                          const ReadOptions& read, const RunContext& context) {
  const RecordedRun run(trace);
  ETUDE_ASSIGN_OR_RETURN(Inspected found, inspection.inspect(run, input, read, context));
  if (inspection.of_times) {
    const std::string note =
        RecordingCostNote(FindRecordingCost(trace, input.path, input.rank, context));
    if (!note.empty()) found.notes.push_back(note);
  }
  found.rank = input.rank ? input.rank : trace.info().rank;
  found.path = input.path;
  found.health = JudgeTrace(run, MakeRankRun(run, found.rank.value_or(0)));
  return found;
}

namespace {

uint64_t StepMarks(const Trace& trace) {
  uint64_t marks = 0;
  ForEachNode(trace, [&](NodeId node) {
    marks += IsStepMark(trace.name(node)) && trace.place(node) != Place::kDevice ? 1 : 0;
  });
  return marks;
}

}  // namespace

ComparedRanks CompareTraces(const Trace& a, const Trace& b, const std::string& path) {
  const TraceDiff diff = DiffTraces(a, b);
  ComparedRanks compared{
      .found = {.rank = a.info().rank, .path = path, .tables = DiffTables(a, b, diff)},
      .same = diff.is_same()};
  if (diff.unpaired) {
    compared.found.notes.emplace_back(
        "the traces are too different to pair their nodes; all nodes outside the common beginning "
        "and end count as removed and added");
  }
  if (const uint64_t steps_a = StepMarks(a), steps_b = StepMarks(b); steps_a != steps_b) {
    compared.found.notes.push_back(
        fmt::format("a has {}, b has {}: counts and times include all steps",
                    FormatCount(steps_a, "step mark"), FormatCount(steps_b)));
  }
  compared.found.health.Add(JudgeTrace(a), "a");
  compared.found.health.Add(JudgeTrace(b), "b");
  return compared;
}

RankPairs PairRanks(std::span<const std::optional<int64_t>> a,
                    std::span<const std::optional<int64_t>> b) {
  if (a.size() == 1 && b.size() == 1) return {.pairs = {{0, 0}}};
  RankPairs found;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto other = std::ranges::find(b, a[i]);
    if (other == b.end()) {
      found.only_a.push_back(i);
    } else {
      found.pairs.push_back({i, static_cast<size_t>(other - b.begin())});
    }
  }
  for (size_t i = 0; i < b.size(); ++i) {
    if (std::ranges::find(a, b[i]) == a.end()) found.only_b.push_back(i);
  }
  return found;
}

}  // namespace etude
