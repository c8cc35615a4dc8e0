#include "src/run/waits/host_times.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "src/run/calls/callers.h"
#include "src/trace/words/comm_backend.h"
#include "src/trace/words/operator_name.h"
#include "src/trace/words/record_scope.h"

namespace etude {
namespace {

// Walks one thread's nodes in order of time.
class ThreadClock {
 public:
  ThreadClock(const Trace& trace, std::vector<std::optional<Nanos>>& own)
      : trace_(trace), own_(own) {}

  // End of a node's wait for other threads. Its thread may have continued up to `slack` earlier.
  struct Waited {
    Nanos until;
    Nanos slack;
  };
  void Add(NodeId node, std::optional<Waited> waited) {
    const Nanos start = *trace_.start(node);
    SettleHandOver(node);
    while (!open_.empty() && EndOf(open_.back()) <= start) Close();
    own_[node.index()] = trace_.duration(node);
    if (!open_.empty()) {
      const NodeId around = open_.back();
      Subtract(around, std::min(EndOf(node), EndOf(around)) - start);
      AddIdle(around, start);
    }
    if (waited) Wait(std::min(start, waited->until), waited->slack);
    SettlePieces(node);
    // A thread waits no earlier than stated by its program.
    if (waited || !IsLabel(node) || trace_.name(node) == kWaitLabel) idle_.clear();
    idle_until_ = start;
    begins_work_ = true;
    open_.push_back(node);
    last_ = node;
  }

  // Marks that Gloo works for the thread's current call, if that issued `label`.
  void HandOver(NodeId label) {
    const Nanos begin = *trace_.start(label);
    while (!open_.empty() && EndOf(open_.back()) <= begin) Close();
    if (open_.empty() || !MayAskFor(open_.back(), label)) return;
    const NodeId call = open_.back();
    handed_over_ = {call, {begin, std::min(EndOf(label), EndOf(call))}, EndOf(label)};
  }

  // To be called after all of the thread's nodes.
  void Finish(std::vector<Interval>& waits, HostTimes::Stretches& stretches) {
    while (!open_.empty()) Close();
    SettlePieces(NodeId::None());
    waits = std::move(waits_);
    for (const Piece& piece : pieces_) {
      const Nanos time = piece.time.end - piece.time.begin;
      if (time.count <= 0 || (piece.is_first && !piece.waited)) continue;
      HostTimes::Stretch& stretch = !piece.before  ? stretches.behind[last_]
                                    : piece.waited ? stretches.woken[piece.before]
                                                   : stretches.ahead[piece.before];
      stretch = {.label = piece.label, .time = stretch.time + time};
      stretches.of_label[piece.label] = stretches.of_label[piece.label] + time;
    }
  }

 private:
  static constexpr size_t kNoPiece = SIZE_MAX;

  // Time of a thread in `node` itself.
  struct Idle {
    NodeId node;
    Interval time;
    bool fresh = false;  // follows the begin of a node
    size_t piece = kNoPiece;
  };

  // Such time in a label.
  struct Piece {
    NodeId label;
    Interval time;
    bool is_first = false;  // before all nodes in the label
    NodeId before;          // the next node begun by the thread
    bool waited = false;    // after a wait for others
  };

  Nanos EndOf(NodeId node) const { return *trace_.start(node) + *trace_.duration(node); }
  bool IsLabel(NodeId node) const { return trace_.kind(node) == NodeKind::kLabel; }

  // A call handed over to Gloo, with the thread inside it until the work was done.
  struct HandedOver {
    NodeId call;
    Interval rest;  // rest of the call
    Nanos done;
  };

  // If a thread continues at the end of the collective, the rest of the call was also a wait.
  void SettleHandOver(NodeId next) {
    if (!handed_over_.call) return;
    const Nanos goes_on = *trace_.start(next);
    const bool waits = WaitsForCommunication(trace_.name(next));
    if (waits && goes_on <= handed_over_.rest.end + kWakesEarly) return;  // continued
    const HandedOver over = std::exchange(handed_over_, {});
    if (waits || goes_on < over.rest.end || goes_on < over.done - kWakesEarly) return;
    Subtract(over.call, over.rest.length());
    if (over.rest.length().count > 0) waits_.push_back(over.rest);
  }

  bool MayAskFor(NodeId call, NodeId label) const {
    const std::string_view name = trace_.name(call);
    if (!IsC10dOperator(name)) return false;
    if (const NodeId issuer = IssuerOfLabel(trace_, label)) return issuer == call;
    return CollectiveFromName(name) == CollectiveFromName(CommOfLabel(trace_.name(label)));
  }

  void Close() {
    const NodeId node = open_.back();
    open_.pop_back();
    AddIdle(node, EndOf(node));
    // The end of a label, or of a wait, proves nothing: its thread may have waited in it, and may
    // still wait.
    if (IsLabel(node) || WaitsForCommunication(trace_.name(node))) return;
    idle_.clear();
    begins_work_ = true;
  }

  void AddIdle(NodeId node, Nanos end) {
    if (end <= idle_until_) return;
    const Interval time{idle_until_, end};
    const bool is_label = IsLabel(node);
    if (is_label) {
      pieces_.push_back({.label = node, .time = time, .is_first = node == last_, .before = {}});
    }
    idle_.push_back({.node = node,
                     .time = time,
                     .fresh = std::exchange(begins_work_, false),
                     .piece = is_label ? pieces_.size() - 1 : kNoPiece});
    idle_until_ = end;
  }

  void SettlePieces(NodeId next) {
    for (; settled_ < pieces_.size(); ++settled_) pieces_[settled_].before = next;
  }

  // Adds a wait until `end`, since the thread's last activity more than `slack` before that.
  void Wait(Nanos end, Nanos slack) {
    std::optional<Nanos> begin;
    for (size_t i = idle_.size(); i-- > 0;) {
      const Idle& idle = idle_[i];
      if (idle.time.begin >= end) {
        if (idle.piece != kNoPiece) pieces_[idle.piece].waited = true;
        continue;
      }
      const Nanos until = std::min(idle.time.end, end);
      Subtract(idle.node, until - idle.time.begin);
      if (idle.piece != kNoPiece) {
        pieces_[idle.piece].time.begin = until;
        pieces_[idle.piece].waited = true;
      }
      begin = idle.time.begin;
      if (idle.fresh && idle.time.begin <= end - slack) break;
    }
    if (begin) waits_.push_back({*begin, end});
  }

  void Subtract(NodeId node, Nanos time) {
    auto& own = own_[node.index()];
    if (time.count > 0) own = std::max(*own - time, Nanos{});
  }

  const Trace& trace_;
  std::vector<std::optional<Nanos>>& own_;
  std::vector<NodeId> open_;
  std::vector<Idle> idle_;   // since the thread's last activity, in order of time
  Nanos idle_until_;         // end of `idle_`
  bool begins_work_ = true;  // the next entry of `idle_` follows work
  std::vector<Interval> waits_;
  HandedOver handed_over_;
  NodeId last_;  // last node begun by the thread
  std::vector<Piece> pieces_;
  size_t settled_ = 0;  // number of pieces with a node after them
};

}  // namespace

std::optional<Nanos> StatedOwnTime(const Trace& trace, NodeId node) {
  if (const auto own = trace.exclusive(node)) return own;
  const bool leaf = trace.children(node).empty();
  return leaf || trace.traits().exclusive_durations ? trace.duration(node) : std::nullopt;
}

// `nodes`: in order of time.
void HostTimes::FindAwaited(const Trace& trace, std::span<const OrderEdge> waits,
                            std::span<const NodeId> nodes) {
  std::unordered_map<NodeId, std::vector<NodeId>> known;
  for (const OrderEdge& wait : waits) {
    if (!wait.in_call) known[wait.node].push_back(wait.before);
  }
  std::map<LaneId, std::vector<NodeId>> labels;  // since the last other node
  for (const NodeId node : nodes) {
    std::vector<NodeId>& run = labels[trace.lane_id(node)];
    const auto add = [&](NodeId before) {
      const bool is_own = trace.lane_id(before) == trace.lane_id(node);
      if (!Precedes(before, node) || (is_own && !RunsBesideItsThread(trace, before))) return;
      const Nanos end = *trace.start(before) + *trace.duration(before);
      const auto first = std::ranges::find_if(
          run, [&](NodeId label) { return *trace.start(label) >= end && Precedes(before, label); });
      awaited_[first == run.end() ? node : *first].push_back(before);
    };
    for (size_t i = 0; i < trace.deps(node).size(); ++i) {
      if (trace.dep_kinds(node)[i] == DepKind::kSync) add(trace.deps(node)[i]);
    }
    if (const auto more = known.find(node); more != known.end()) {
      std::ranges::for_each(more->second, add);
    }
    if (RunsBesideItsThread(trace, node)) continue;
    const bool is_part = trace.kind(node) == NodeKind::kLabel && !IsWorkingLabel(trace, node) &&
                         !WaitsForCommunication(trace.name(node));
    if (is_part) {
      run.push_back(node);
    } else {
      run.clear();
    }
  }
}

std::optional<HostTimes> HostTimes::Find(const Trace& trace, std::span<const OrderEdge> waits) {
  std::vector<NodeId> nodes;
  bool complete = true;
  ForEachNode(trace, [&](NodeId node) {
    const auto duration = trace.duration(node);
    if (!duration || duration->count < 0) return;
    nodes.push_back(node);
    complete &= trace.start(node).has_value() && static_cast<bool>(trace.lane_id(node));
  });
  // If durations exclude children, the nodes around a node are unknown.
  if (nodes.empty() || !complete || trace.traits().exclusive_durations) return std::nullopt;
  std::ranges::sort(nodes, {}, [&](NodeId node) {
    return std::tuple(*trace.start(node), -trace.duration(node)->count, trace.source_id(node),
                      node);
  });
  HostTimes times;
  times.own_.resize(trace.node_count());
  times.before_.resize(trace.node_count());
  times.position_.assign(trace.node_count(), UINT32_MAX);
  for (size_t i = 0; i < nodes.size(); ++i) {
    times.position_[nodes[i].index()] = static_cast<uint32_t>(i);
  }
  times.FindAwaited(trace, waits, nodes);
  std::map<LaneId, std::pair<ThreadClock, NodeId>> threads;
  for (const NodeId node : nodes) {
    const LaneId lane = trace.lane_id(node);
    auto& [thread, last] =
        threads.try_emplace(lane, ThreadClock(trace, times.own_), NodeId()).first->second;
    std::optional<ThreadClock::Waited> waited;
    for (const NodeId before : times.awaited(node)) {
      const Nanos end = *trace.start(before) + *trace.duration(before);
      if (waited && end <= waited->until) continue;
      const bool is_late = trace.lane_id(before) != lane && IsHostThreadLabel(trace.name(before));
      waited = {.until = end, .slack = is_late ? kWakesEarly : Nanos{}};
    }
    times.before_[node.index()] = last;
    if (RunsBesideItsThread(trace, node)) {
      times.own_[node.index()] = trace.duration(node);
      continue;
    }
    thread.Add(node, waited);
    last = node;
    if (!IsHostThreadLabel(trace.name(node))) continue;
    for (auto& [other, clock] : threads) {
      if (other != lane) clock.first.HandOver(node);
    }
  }
  for (auto& [lane, thread] : threads) {
    std::vector<Interval> waited;
    thread.first.Finish(waited, times.stretches_);
    times.waits_.emplace(lane, TimeSet(std::move(waited)));
  }
  return times;
}

const TimeSet& HostTimes::waits(LaneId lane) const {
  static const TimeSet none;
  const auto found = waits_.find(lane);
  return found == waits_.end() ? none : found->second;
}

std::span<const NodeId> HostTimes::awaited(NodeId node) const {
  const auto found = awaited_.find(node);
  return found == awaited_.end() ? std::span<const NodeId>() : found->second;
}

bool HostTimes::Precedes(NodeId a, NodeId b) const {
  return position_[a.index()] < position_[b.index()];
}

}  // namespace etude
