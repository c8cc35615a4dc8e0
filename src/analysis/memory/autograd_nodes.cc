#include "src/analysis/memory/autograd_nodes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <unordered_map>

#include "src/trace/words/phase.h"

namespace etude {
namespace {

// An operator, or a Python function, with the number of the next node to be created.
struct Numbered {
  size_t place = 0;  // among the trace's host nodes
  int64_t next = 0;
};

std::optional<int64_t> NumberOf(const Trace& trace, NodeId node) {
  const std::optional<int64_t> number = trace.seq_id(node);
  return number && *number >= 0 ? number : std::nullopt;
}

// Returns true if a label with a number is that of a backward function. Otherwise it is that of a
// Python function (torch.autograd.Function), which creates a node.
bool LabelsBackward(const Trace& trace, NodeId label) {
  const NodeId around = trace.parent(label);
  return PhaseOfLabel(trace, label) == Phase::kBackward ||
         (around && PhaseOfLabel(trace, around) == Phase::kBackward);
}

}  // namespace

std::vector<bool> MadeAutogradNodes(const RecordedStep& step) {
  const Trace& trace = step.trace();
  const std::vector<NodeId> host = HostNodesById(trace);
  std::vector<size_t> place(trace.node_count());
  std::unordered_map<uint64_t, std::vector<Numbered>> threads;
  int64_t last_run = -1;  // max number of a backward function that ran
  for (size_t i = 0; i < host.size(); ++i) {
    place[host[i].index()] = i;
    const std::optional<int64_t> number = NumberOf(trace, host[i]);
    if (!number) continue;
    if (IsOperator(trace, host[i]) || !LabelsBackward(trace, host[i])) {
      threads[trace.tid(host[i]).value_or(0)].push_back({i, *number});
    } else {
      last_run = std::max(last_run, *number);
    }
  }
  std::vector<bool> made(step.nodes().size());
  for (uint32_t i = 0; i < made.size(); ++i) {
    const NodeId node = step.nodes()[i];
    const std::optional<int64_t> number = NumberOf(trace, node);
    if (!number || !step.is_operator(i)) continue;
    const std::vector<Numbered>& thread = threads.at(trace.tid(node).value_or(0));
    const size_t last = place[step.nodes()[step.last_inside(i)].index()];
    const auto after = std::ranges::upper_bound(thread, last, {}, &Numbered::place);
    // The last one inside, or the operator itself, reveals the nodes created before.
    const int64_t made_inside = std::prev(after)->next - *number;
    const bool made_last = after == thread.end() ? *number <= last_run : after->next > *number;
    made[i] = made_inside > 0 || made_last;
  }
  return made;
}

}  // namespace etude
