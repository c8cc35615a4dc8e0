#include "src/run/waits/program_order.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>

#include "src/trace/words/comm_backend.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

// Host nodes below others, orphans below their threads.
class HostTree {
 public:
  explicit HostTree(const Trace& trace) : trace_(trace), threads_(ThreadsOfOrphans(trace)) {
    ForEachNode(trace, [&](NodeId node) {
      if (threads_[node.index()]) adopted_[threads_[node.index()]].push_back(node);
    });
  }

  NodeId Parent(NodeId node) const {
    const NodeId parent = trace_.parent(node);
    return parent ? parent : threads_[node.index()];
  }

  // Pushes the host children of `node` onto the stack in reverse order of ids.
  void PushChildren(NodeId node, std::vector<NodeId>& stack) const {
    const size_t first = stack.size();
    for (const NodeId child : trace_.children(node)) {
      if (trace_.place(child) != Place::kDevice) stack.push_back(child);
    }
    if (const auto found = adopted_.find(node); found != adopted_.end()) {
      stack.insert(stack.end(), found->second.begin(), found->second.end());
    }
    const auto added = stack.begin() + static_cast<std::ptrdiff_t>(first);
    const auto later_first = [&](NodeId a, NodeId b) { return ComesLater(trace_, a, b); };
    if (!std::is_sorted(added, stack.end(), later_first)) {
      std::sort(added, stack.end(), later_first);
    }
  }

 private:
  const Trace& trace_;
  std::vector<NodeId> threads_;
  std::unordered_map<NodeId, std::vector<NodeId>> adopted_;
};

}  // namespace

std::vector<NodeId> ThreadsOfOrphans(const Trace& trace) {
  // A damaged trace may have a thread's root below a node that ran, even below an orphan, which
  // would then be below itself.
  const auto is_in_place = [&](NodeId root) {
    const NodeId parent = trace.parent(root);
    return !parent || (trace.kind(parent) == NodeKind::kProcess && !trace.parent(parent));
  };
  std::unordered_map<uint64_t, NodeId> roots;
  ForEachNode(trace, [&](NodeId node) {
    if (trace.kind(node) == NodeKind::kThread && trace.tid(node) && is_in_place(node)) {
      roots.emplace(*trace.tid(node), node);
    }
  });
  std::vector<NodeId> threads(trace.node_count());
  ForEachNode(trace, [&](NodeId node) {
    const NodeKind kind = trace.kind(node);
    if (trace.parent(node) || trace.place(node) == Place::kDevice || !trace.tid(node) ||
        IsRoot(kind) || kind == NodeKind::kMetadata) {
      return;
    }
    const auto root = roots.find(*trace.tid(node));
    if (root != roots.end()) threads[node.index()] = root->second;
  });
  return threads;
}

std::vector<OrderEdge> HostOrder(const Trace& trace, const std::function<LaneId(NodeId)>& lane_of) {
  const HostTree tree(trace);
  const auto lane = [&](NodeId node) { return lane_of ? lane_of(node) : trace.lane_id(node); };
  // True for a Gloo collective known to have run on another thread than its caller.
  const auto runs_elsewhere = [&](NodeId node) {
    const NodeId parent = trace.parent(node);
    if (!parent || !IsHostThreadLabel(trace.name(node))) return false;
    return lane(node) && lane(parent) && lane(node) != lane(parent);
  };
  std::vector<OrderEdge> edges;
  std::vector<NodeId> stack;
  std::vector<NodeId> elsewhere;
  const auto walk = [&](NodeId root, NodeId& before) {
    stack.assign(1, root);
    while (!stack.empty()) {
      const NodeId node = stack.back();
      stack.pop_back();
      if (node != root && runs_elsewhere(node)) {
        elsewhere.push_back(node);
        continue;
      }
      if (before) {
        edges.push_back({.node = node,
                         .before = before,
                         .reason = OrderReason::kThreadOrder,
                         .evidence = Evidence::kByThread});
      }
      before = node;
      tree.PushChildren(node, stack);
    }
  };
  ForEachNode(trace, [&](NodeId root) {
    const NodeId parent = tree.Parent(root);
    const bool begins = !parent || trace.kind(parent) == NodeKind::kProcess;
    if (!begins || trace.place(root) == Place::kDevice) return;
    if (trace.kind(root) == NodeKind::kProcess) return;
    NodeId before;
    walk(root, before);
  });
  std::map<LaneId, NodeId> last;
  for (size_t i = 0; i < elsewhere.size(); ++i) {
    const NodeId root = elsewhere[i];
    walk(root, last[lane(root)]);
  }
  return edges;
}

bool IsDeviceWork(NodeKind kind) {
  switch (kind) {
    case NodeKind::kKernel:
    case NodeKind::kMemcpy:
    case NodeKind::kMemset:
    case NodeKind::kCollective:
    case NodeKind::kSend:
    case NodeKind::kRecv:
    case NodeKind::kMemLoad:
    case NodeKind::kMemStore:
    case NodeKind::kCompute: return true;
    case NodeKind::kUnknown:
    case NodeKind::kProcess:
    case NodeKind::kThread:
    case NodeKind::kOperator:
    case NodeKind::kLabel:
    case NodeKind::kRuntime:
    case NodeKind::kSync:
    case NodeKind::kMetadata: return false;
  }
  return false;
}

std::vector<NodeId> TopDown(const Trace& trace) {
  std::vector<NodeId> order;
  order.reserve(trace.node_count());
  ForEachNode(trace, [&](NodeId node) {
    if (!trace.parent(node)) order.push_back(node);
  });
  for (size_t i = 0; i < order.size(); ++i) {
    for (const NodeId child : trace.children(order[i])) order.push_back(child);
  }
  return order;
}

std::vector<OrderEdge> StreamOrder(const Trace& trace) {
  struct StreamWork {
    LaneId lane;
    Nanos start;
    NodeId node;
  };
  std::vector<StreamWork> work;
  ForEachNode(trace, [&](NodeId node) {
    const LaneId lane = trace.lane_id(node);
    const auto start = trace.start(node);
    if (trace.place(node) != Place::kDevice || !IsDeviceWork(trace.kind(node)) || !lane || !start) {
      return;
    }
    if (trace.lane(lane).stream >= 0) work.push_back({lane, *start, node});
  });
  std::ranges::sort(work, [](const StreamWork& a, const StreamWork& b) {
    return std::tie(a.lane, a.start, a.node) < std::tie(b.lane, b.start, b.node);
  });
  std::vector<OrderEdge> edges;
  for (size_t i = 1; i < work.size(); ++i) {
    if (work[i].lane != work[i - 1].lane) continue;
    edges.push_back({.node = work[i].node,
                     .before = work[i - 1].node,
                     .reason = OrderReason::kStreamOrder,
                     .evidence = Evidence::kByThread});
  }
  return edges;
}

}  // namespace etude
