#include "src/run/calls/launch.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "src/trace/words/stated_facts.h"

namespace etude {

std::optional<int64_t> LaunchCorrelation(const Trace& trace, NodeId node) {
  const std::optional<int64_t> correlation = trace.correlation(node);
  return correlation && *correlation > 0 ? correlation : std::nullopt;
}

bool LaunchesWork(std::string_view call) {
  // XPU: urEnqueueKernelLaunch.
  constexpr std::string_view kParts[] = {"LaunchKernel", "LaunchCooperativeKernel", "KernelLaunch",
                                         "GraphLaunch"};
  return std::ranges::any_of(
      kParts, [&](std::string_view part) { return call.find(part) != std::string_view::npos; });
}

bool BeginsCapture(std::string_view call) {
  return call.find("StreamBeginCapture") != std::string_view::npos;
}

bool EndsCapture(std::string_view call) {
  return call.find("StreamEndCapture") != std::string_view::npos;
}

bool MayLaunchEarly(std::string_view call) {
  return call.find("LaunchKernelEx") != std::string_view::npos;
}

std::vector<NodeId> FindLaunchers(const Trace& trace) {
  std::unordered_map<int64_t, NodeId> calls;
  ForEachNode(trace, [&](NodeId node) {
    if (trace.kind(node) != NodeKind::kRuntime) return;
    if (const auto correlation = LaunchCorrelation(trace, node)) calls.emplace(*correlation, node);
  });
  std::vector<NodeId> launchers(trace.node_count());
  std::vector<bool> done(trace.node_count());
  std::vector<NodeId> path;  // nested device nodes
  ForEachNode(trace, [&](NodeId first) {
    path.clear();
    NodeId node = first;
    while (node && trace.place(node) == Place::kDevice && !done[node.index()]) {
      path.push_back(node);
      node = trace.parent(node);
    }
    NodeId above = node;
    if (node && trace.place(node) == Place::kDevice) above = launchers[node.index()];
    for (size_t i = path.size(); i-- > 0;) {
      const NodeId inner = path[i];
      NodeId launcher = above;
      const auto correlation = LaunchCorrelation(trace, inner);
      if (!launcher && correlation) {
        const auto call = calls.find(*correlation);
        if (call != calls.end()) launcher = call->second;
      }
      launchers[inner.index()] = above = launcher;
      done[inner.index()] = true;
    }
  });
  return launchers;
}

bool HasEarlyLaunch(const Trace& linked, NodeId kernel) {
  return StatedText(linked, kernel, kLaunchedByKey).has_value();
}

}  // namespace etude
