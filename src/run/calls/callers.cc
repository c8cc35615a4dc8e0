#include "src/run/calls/callers.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <unordered_map>

#include "src/trace/words/comm_backend.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

// Returns true if `call` had ended when `later` began; false if unknown. With clocks of whole
// microseconds, the last callees of an operator may begin at its end and take no time.
bool LeftBefore(const NodeTime& call, const NodeTime& later) {
  if (!call.start || !call.duration || !later.start) return false;
  const Nanos end = *call.start + *call.duration;
  return end < *later.start || (end == *later.start && later.duration != Nanos{});
}

// Returns true if both are the same call except for numbers: the same operator on the same memory,
// or without tensors, with the same arguments.
bool IsSameCall(const Trace& trace, NodeId a, NodeId b) {
  const auto of_a = trace.inputs(a);
  const auto of_b = trace.inputs(b);
  if (trace.op_schema(a) != trace.op_schema(b) || of_a.size() != of_b.size()) return false;
  bool has_tensor = false;
  bool same = true;
  for (size_t i = 0; i < of_a.size(); ++i) {
    if (of_a[i].kind != of_b[i].kind) return false;
    if (of_a[i].kind != ValueKind::kTensor) {
      same = same && of_a[i] == of_b[i];
      continue;
    }
    const TensorUse& use_a = trace.tensor(of_a[i].as_tensor());
    const TensorUse& use_b = trace.tensor(of_b[i].as_tensor());
    if (use_a.storage != use_b.storage || use_a.shape != use_b.shape) return false;
    has_tensor = true;
  }
  return has_tensor || (same && !of_a.empty());
}

// Compares lanes if known: PyTorch's observer assigns Gloo's labels to the issuing thread.
bool AreOnOneThread(const Trace& trace, NodeId a, const NodeTime& time_a, NodeId b,
                    const NodeTime& time_b) {
  if (time_a.lane && time_b.lane) return time_a.lane == time_b.lane;
  return trace.tid(a) == trace.tid(b);
}

// By position: issuers of labels with work on another thread; else kNoCaller.
std::vector<uint32_t> IssuersElsewhere(const Trace& trace, std::span<const NodeId> nodes,
                                       std::span<const NodeTime> times,
                                       const std::vector<uint32_t>& position) {
  std::vector<uint32_t> issuers(nodes.size(), kNoCaller);
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    const NodeId issuer = IssuerOfLabel(trace, nodes[i]);
    const uint32_t at = issuer ? position[issuer.index()] : kNoCaller;
    if (at >= i || AreOnOneThread(trace, issuer, times[at], nodes[i], times[i])) continue;
    issuers[i] = at;
  }
  return issuers;
}

// Finds the callers of nodes on threads of PyTorch's pool.
class PoolCallers {
 public:
  // Completes `callers`.
  PoolCallers(const Trace& trace, std::span<const NodeId> nodes, std::vector<uint32_t>& callers)
      : trace_(trace), nodes_(nodes), callers_(callers) {}

  void Find(const std::function<NodeTime(NodeId)>& time_of) {
    FindThreads();
    if (threads_.size() < 2 || std::ranges::none_of(threads_, IsCandidate)) return;
    LinkCallees();
    std::map<uint64_t, uint32_t> last;  // by thread: last begun node
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      const std::optional<uint64_t> tid = ThreadOf(i);
      if (!tid) continue;
      Thread& thread = threads_.at(*tid);
      if (IsTop(i) && thread.is_pool) {
        const uint32_t caller = CallerOf(i, *tid, last, time_of);
        thread.is_pool = caller != kNoCaller;
        thread.calls.emplace_back(i, caller);
      }
      last[*tid] = i;
    }
    for (const auto& [tid, thread] : threads_) {
      if (!thread.is_pool) continue;
      for (const auto& [call, caller] : thread.calls) callers_[call] = caller;
    }
  }

 private:
  struct Thread {
    bool is_pool = true;                               // may belong to the pool
    std::vector<std::pair<uint32_t, uint32_t>> calls;  // nodes without a caller on the thread,
                                                       // and their callers
  };

  static bool IsCandidate(const std::pair<const uint64_t, Thread>& thread) {
    return thread.second.is_pool;
  }
  bool IsRootAt(uint32_t i) const {
    const NodeKind kind = trace_.kind(nodes_[i]);
    return kind == NodeKind::kProcess || kind == NodeKind::kThread;
  }
  bool IsOperatorAt(uint32_t i) const { return !trace_.text(trace_.op_schema(nodes_[i])).empty(); }
  bool IsTop(uint32_t i) const { return callers_[i] == kNoCaller || IsRootAt(callers_[i]); }
  // nullopt: unknown, or the node does not stand for a call.
  std::optional<uint64_t> ThreadOf(uint32_t i) const {
    const NodeKind kind = trace_.kind(nodes_[i]);
    if (IsRootAt(i) || kind == NodeKind::kMetadata) return std::nullopt;
    return trace_.tid(nodes_[i]);
  }

  void FindThreads() {
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      const auto tid = ThreadOf(i);
      if (!tid) continue;
      Thread& thread = threads_[*tid];
      const bool is_label = !IsOperatorAt(i);
      if (is_label && (IsTop(i) || IsHostThreadLabel(trace_.name(nodes_[i]))))
        thread.is_pool = false;
    }
  }

  void LinkCallees() {
    first_.assign(nodes_.size(), kNoCaller);
    next_.assign(nodes_.size(), kNoCaller);
    for (auto i = static_cast<uint32_t>(nodes_.size()); i-- > 0;) {
      if (callers_[i] == kNoCaller) continue;
      next_[i] = first_[callers_[i]];
      first_[callers_[i]] = i;
    }
  }

  // Returns the operator of another thread that called node `i` of thread `tid`; kNoCaller if there
  // is none or several are possible.
  uint32_t CallerOf(uint32_t i, uint64_t tid, const std::map<uint64_t, uint32_t>& last,
                    const std::function<NodeTime(NodeId)>& time_of) const {
    uint32_t found = kNoCaller;
    for (const auto& [other, position] : last) {
      if (other == tid) continue;
      uint32_t at = position;
      while (at != kNoCaller && !MadeSameCall(at, i)) at = callers_[at];
      if (at == kNoCaller || !RanDuring(time_of(nodes_[i]), time_of(nodes_[at]))) continue;
      if (found != kNoCaller) return kNoCaller;
      found = at;
    }
    return found;
  }

  bool MadeSameCall(uint32_t caller, uint32_t call) const {
    if (!IsOperatorAt(caller)) return false;
    for (uint32_t at = first_[caller]; at != kNoCaller; at = next_[at]) {
      if (IsSameCall(trace_, nodes_[at], nodes_[call])) return true;
    }
    return false;
  }

  // Returns true also if times cannot decide: one is unknown, or they belong to a native capture,
  // where recording overhead shifts threads against each other.
  bool RanDuring(const NodeTime& call, const NodeTime& caller) const {
    if (trace_.traits().has_loose_thread_times || !call.start || !caller.start) return true;
    return *caller.start <= *call.start && !LeftBefore(caller, call);
  }

  const Trace& trace_;
  std::span<const NodeId> nodes_;
  std::vector<uint32_t>& callers_;
  std::map<uint64_t, Thread> threads_;
  std::vector<uint32_t> first_;  // by node: first callee
  std::vector<uint32_t> next_;   // by node: next callee of its caller
};

// The second is that of older releases.
constexpr auto kAsyncFlags = std::to_array<std::string_view>({"async_op", "asyncOp"});

}  // namespace

bool IsAsyncFlag(std::string_view argument) {
  return std::ranges::count(kAsyncFlags, argument) != 0;
}

bool IsSynchronous(const Trace& trace, NodeId node) {
  const std::string_view schema = trace.text(trace.op_schema(node));
  std::optional<size_t> position;
  for (const std::string_view name : kAsyncFlags) {
    if (!position) position = ArgumentPosition(schema, name);
  }
  const auto values = trace.inputs(node);
  if (!position || *position >= values.size()) return false;
  const Value& value = values[*position];
  return value.kind == ValueKind::kBool && !value.as_bool();
}

// Chakra's converter makes all calls collectives.
bool StandsForLostLabel(const Trace& trace, NodeId node) {
  return trace.kind(node) == NodeKind::kCollective && trace.place(node) == Place::kHost &&
         !trace.traits().calls_are_collectives && IsC10dOperator(trace.name(node));
}

NodeId IssuerOfLabel(const Trace& trace, NodeId node) {
  if (!IsHostThreadLabel(trace.name(node))) return NodeId::None();
  const auto is_call = [&](NodeId of) { return of && IsC10dOperator(trace.name(of)); };
  const std::span<const NodeId> deps = trace.deps(node);
  for (size_t i = 0; i < deps.size(); ++i) {
    if (trace.dep_kinds(node)[i] != DepKind::kSync && is_call(deps[i])) return deps[i];
  }
  const NodeId above = trace.parent(node);
  return is_call(above) ? above : NodeId::None();
}

bool RunsBesideItsThread(const Trace& trace, NodeId node) {
  const NodeKind kind = trace.kind(node);
  const bool is_message = kind == NodeKind::kSend || kind == NodeKind::kRecv;
  if (!is_message || !IsHostThreadLabel(trace.name(node))) return false;
  const NodeId issuer = IssuerOfLabel(trace, node);
  const auto call_end = issuer ? EndOf(trace, issuer) : std::nullopt;
  const auto end = EndOf(trace, node);
  return !call_end || !end || *end > *call_end;
}

std::vector<uint32_t> FindCallers(const Trace& trace, std::span<const NodeId> nodes,
                                  const std::function<NodeTime(NodeId)>& time_of) {
  const auto count = static_cast<uint32_t>(nodes.size());
  std::vector<uint32_t> position(trace.node_count(), kNoCaller);
  for (uint32_t i = 0; i < count; ++i) position[nodes[i].index()] = i;
  std::vector<bool> label(count);
  for (uint32_t i = 0; i < count; ++i) label[i] = IsHostThreadLabel(trace.name(nodes[i]));
  const bool disturbed = std::ranges::find(label, true) != label.end();
  std::vector<NodeTime> times;
  std::vector<uint32_t> issuers;
  if (disturbed) {
    times.reserve(count);
    for (const NodeId node : nodes) times.push_back(time_of(node));
    issuers = IssuersElsewhere(trace, nodes, times, position);
  }

  std::vector<uint32_t> callers(count, kNoCaller);
  std::unordered_map<LaneId, std::vector<uint32_t>> open;  // by the clock, each inside the last one
  for (uint32_t i = 0; i < count; ++i) {
    const NodeId parent = trace.parent(nodes[i]);
    uint32_t& caller = callers[i];
    if (parent && position[parent.index()] < i) caller = position[parent.index()];
    if (!disturbed) continue;
    std::vector<uint32_t>& calls = open[times[i].lane];
    while (!calls.empty() && LeftBefore(times[calls.back()], times[i])) calls.pop_back();
    const bool is_elsewhere = issuers[i] != kNoCaller;
    if (is_elsewhere) {
      caller = issuers[i];
    } else {
      const auto is_around = [&](uint32_t at) {
        if (label[at] && (issuers[at] == kNoCaller ||
                          !AreOnOneThread(trace, nodes[at], times[at], nodes[i], times[i]))) {
          return false;
        }
        return !LeftBefore(times[at], times[i]);
      };
      while (caller != kNoCaller && !is_around(caller)) caller = callers[caller];
      if (!calls.empty() && (caller == kNoCaller || caller < calls.back())) caller = calls.back();
    }
    if ((is_elsewhere || !label[i]) && times[i].duration) calls.push_back(i);
  }
  PoolCallers(trace, nodes, callers).Find(time_of);
  return callers;
}

}  // namespace etude
