#include "src/run/activity.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "src/run/calls/callers.h"
#include "src/run/calls/launch.h"
#include "src/run/step/recorded_step.h"
#include "src/trace/simulated.h"

namespace etude {
namespace {

// Returns the activity of a node that works on some lane.
Activity ActivityOf(NodeKind kind) {
  switch (kind) {
    case NodeKind::kOperator:
    case NodeKind::kKernel:
    case NodeKind::kCompute: return Activity::kCompute;
    case NodeKind::kCollective:
    case NodeKind::kSend:
    case NodeKind::kRecv: return Activity::kCommunication;
    case NodeKind::kMemcpy:
    case NodeKind::kMemset:
    case NodeKind::kMemLoad:
    case NodeKind::kMemStore: return Activity::kCopy;
    case NodeKind::kUnknown:
    case NodeKind::kProcess:
    case NodeKind::kThread:
    case NodeKind::kLabel:
    case NodeKind::kRuntime:
    case NodeKind::kSync:
    case NodeKind::kMetadata: return Activity::kNone;
  }
  return Activity::kNone;
}

}  // namespace

std::string_view Name(Activity activity) {
  switch (activity) {
    case Activity::kNone: return "none";
    case Activity::kCompute: return "compute";
    case Activity::kCommunication: return "communication";
    case Activity::kCopy: return "copy";
  }
  return "none";
}

Activity DeviceActivity(const Trace& trace, NodeId node) {
  const NodeKind kind = trace.kind(node);
  if (trace.place(node) == Place::kHost || kind == NodeKind::kOperator) return Activity::kNone;
  return ActivityOf(kind);
}

Activity HostActivity(const Trace& trace, NodeId node) {
  if (trace.place(node) != Place::kHost) return Activity::kNone;
  const NodeKind kind = trace.kind(node);
  const bool calls = kind == NodeKind::kLabel || kind == NodeKind::kRuntime;
  if (calls && HostComputes(trace)) return Activity::kCompute;
  if (StandsForLostLabel(trace, node)) return Activity::kCompute;
  return ActivityOf(kind);
}

std::optional<Interval> TimeOf(const Trace& trace, NodeId node) {
  const auto start = trace.start(node);
  const auto duration = trace.duration(node);
  if (!start || !duration || duration->count < 0) return std::nullopt;
  return Interval{*start, *start + *duration};
}

std::optional<Interval> SpanOf(const Trace& trace) {
  std::optional<Interval> span;
  ForEachNode(trace, [&](NodeId node) {
    const auto time = TimeOf(trace, node);
    if (!time || trace.place(node) == Place::kUnknown) return;
    if (!span) span = time;
    span->begin = std::min(span->begin, time->begin);
    span->end = std::max(span->end, time->end);
  });
  return span;
}

std::vector<StepWindow> FindSteps(const Trace& trace) {
  std::vector<StepWindow> steps;
  // Exclusive time of a mark does not determine its end.
  if (trace.traits().exclusive_durations || HostComputes(trace)) return steps;
  ForEachNode(trace, [&](NodeId node) {
    if (trace.place(node) == Place::kDevice || !IsStepMark(trace.name(node))) return;
    if (const auto time = TimeOf(trace, node)) steps.push_back({trace.name(node), *time});
  });
  std::ranges::stable_sort(steps, {}, [](const StepWindow& step) {
    return std::tuple(step.window.begin, step.window.end);
  });
  return steps;
}

Launches::Launches(const Trace& trace) : trace_(&trace), launchers_(trace.node_count()) {
  std::unordered_map<int64_t, NodeId> calls;
  ForEachNode(trace, [&](NodeId node) {
    const auto correlation = LaunchCorrelation(trace, node);
    if (trace.kind(node) == NodeKind::kRuntime && correlation) {
      calls.emplace(*correlation, node);
    }
  });
  ForEachNode(trace, [&](NodeId node) {
    if (DeviceActivity(trace, node) == Activity::kNone) return;
    NodeId& launcher = launchers_[node.index()];
    if (const auto correlation = LaunchCorrelation(trace, node)) {
      if (const auto call = calls.find(*correlation); call != calls.end()) launcher = call->second;
    }
    const NodeId parent = trace.parent(node);
    if (!launcher && parent && trace.place(parent) == Place::kHost) launcher = parent;
  });
}

std::optional<Nanos> Launches::time(NodeId work) const {
  const NodeId by = launcher(work);
  if (!by) return std::nullopt;
  const NodeKind kind = trace_->kind(by);
  if (kind == NodeKind::kProcess || kind == NodeKind::kThread) return std::nullopt;
  return trace_->start(by);
}

}  // namespace etude
