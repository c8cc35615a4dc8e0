#include "src/run/rank_run.h"

#include <utility>

#include <fmt/format.h>

#include "src/run/activity.h"
#include "src/run/calls/callers.h"
#include "src/run/run_graph.h"
#include "src/trace/words/thread_text.h"

namespace etude {
namespace {

std::string LaneText(const Trace& trace, const Lane& lane) {
  if (lane.stream >= 0) {
    return StreamText(trace, lane);
  }
  return ThreadText(trace, lane, "unknown");
}

GapKind GapOf(const RunStep& step) {
  if (step.part == PathPart::kLaunchDelay) return GapKind::kLaunch;
  if (step.part == PathPart::kQueueWait) return GapKind::kQueue;
  return step.beside == PathPart::kHostWait ? GapKind::kHostWait : GapKind::kHostGap;
}

}  // namespace

std::string_view Name(GapKind kind) {
  switch (kind) {
    case GapKind::kHostGap: return "host gap";
    case GapKind::kLaunch: return "launch";
    case GapKind::kQueue: return "queue";
    case GapKind::kHostWait: return "host wait";
    case GapKind::kTransfer: return "transfer";
    case GapKind::kUnexplained: return "unexplained";
  }
  return "unexplained";
}

RankRun MakeRankRun(const RecordedRun& recorded_run, CommLog log) {
  const Trace& trace = recorded_run.trace();
  const TimedGraph& recorded = recorded_run.graph();
  const RunGraph& graph = recorded.graph;
  RankRun run;
  run.untimed = recorded.untimed;
  run.contradictions = recorded.contradictions;
  for (size_t i = 0; i < trace.lane_count(); ++i) {
    run.lanes.push_back(LaneText(trace, trace.lane(LaneId::FromIndex(i))));
  }
  run.lanes.emplace_back("unknown");
  const auto lane_of = [&](NodeId node) {
    const LaneId lane = trace.lane_id(node);
    return static_cast<uint32_t>(lane ? lane.index() : run.lanes.size() - 1);
  };
  run.times.reserve(graph.points());
  for (uint32_t point = 0; point < graph.points(); ++point) {
    run.times.push_back(recorded.TimeOfPoint(trace, point));
  }
  run.edges.assign(graph.edges().begin(), graph.edges().end());
  run.steps.reserve(graph.edge_count());
  for (size_t i = 0; i < graph.edge_count(); ++i) {
    const RunStep& step = graph.step(i);
    const GapKind gap = GapOf(step);
    // A launch and its work may follow each other without a delay.
    if (gap == GapKind::kLaunch || gap == GapKind::kQueue) run.edges[i].weight = Nanos{};
    run.steps.push_back({.node = graph.begin(step.node) / 2,
                         .lane = lane_of(step.node),
                         .gap = gap,
                         .is_own = step.is_own,
                         .is_woken = step.is_woken});
  }
  for (const CommCall& call : log.calls) {
    std::optional<RankRun::Call>& at = run.calls.emplace_back();
    if (!graph.has(call.row)) continue;
    at = {.node = graph.begin(call.row) / 2,
          .lane = lane_of(call.row),
          .has_callees = DeviceActivity(trace, call.row) == Activity::kNone &&
                         !RunsBesideItsThread(trace, call.row)};
  }
  run.log = std::move(log);
  return run;
}

RankRun MakeRankRun(const RecordedRun& run, int64_t rank) {
  return MakeRankRun(run, ReadCommLog(run.trace(), rank));
}

}  // namespace etude
