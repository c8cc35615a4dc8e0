#include "src/run/waits/thread_edges.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <ranges>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "src/run/calls/callers.h"
#include "src/trace/words/comm_backend.h"
#include "src/trace/words/enums.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

struct Ran {
  Nanos begin;
  Nanos end;
  NodeId node;
};

bool HasChildOnLane(const Trace& tree, std::span<const NodeTime> times, NodeId node) {
  return std::ranges::any_of(tree.children(node), [&](NodeId child) {
    return times[child.index()].lane == times[node.index()].lane && times[child.index()].start;
  });
}

// Returns the nodes of each lane in order of begin: callers before callees.
std::vector<std::vector<Ran>> RanByLane(const Trace& tree, std::span<const NodeTime> times) {
  std::vector<std::vector<Ran>> lanes;
  ForEachNode(tree, [&](NodeId node) {
    const NodeTime& time = times[node.index()];
    if (tree.place(node) == Place::kDevice || !time.start || !time.duration || !time.lane) return;
    if (lanes.size() <= time.lane.index()) lanes.resize(time.lane.index() + 1);
    const Nanos end = *time.start + std::max(*time.duration, Nanos{});
    lanes[time.lane.index()].push_back({*time.start, end, node});
  });
  std::erase_if(lanes, [](const std::vector<Ran>& ran) { return ran.empty(); });
  for (std::vector<Ran>& ran : lanes) {
    std::ranges::sort(ran, [&](const Ran& a, const Ran& b) {
      if (a.begin != b.begin) return a.begin < b.begin;
      if (a.end != b.end) return b.end < a.end;
      return std::tuple(tree.source_id(a.node), a.node) <
             std::tuple(tree.source_id(b.node), b.node);
    });
  }
  return lanes;
}

// Gloo's labels, which last as long as the collective on Gloo's thread.
class GlooLabels {
 public:
  struct Label {
    Ran ran;
    const CommBackend* backend = nullptr;
    size_t lane = 0;
    CollectiveType type = CollectiveType::kUnknown;
    NodeId issuer;
    bool is_taken = false;
  };

  GlooLabels(const Trace& tree, const std::vector<std::vector<Ran>>& lanes) {
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      for (const Ran& one : lanes[lane]) {
        const std::string_view name = tree.name(one.node);
        if (!IsHostThreadLabel(name)) continue;
        labels_.push_back({.ran = one,
                           .backend = BackendOfLabel(name),
                           .lane = lane,
                           .type = TypeOf(CommOfLabel(name)),
                           .issuer = IssuerOfLabel(tree, one.node)});
      }
    }
    std::ranges::stable_sort(labels_, {}, BeginOf);
    by_end_.resize(labels_.size());
    std::iota(by_end_.begin(), by_end_.end(), size_t{0});
    std::ranges::stable_sort(by_end_, {}, [&](size_t i) { return labels_[i].ran.end; });
    for (size_t i = 0; i < labels_.size(); ++i) {
      const Label& label = labels_[i];
      (label.issuer ? by_issuer_[label.issuer] : by_type_[label.type]).push_back(i);
    }
  }

  bool empty() const { return labels_.empty(); }

  static CollectiveType TypeOf(std::string_view name) {
    return CollectiveFromName(name).value_or(CollectiveType::kUnknown);
  }

  struct Found {
    Ran ran;
    Evidence evidence;  // of the label's assignment to the call
  };
  // Takes the label of a call on `lane` that began before `next`: its own label that ends last, if
  // the trace states the issuers; else the first unassigned one of its type that began after the
  // call.
  std::optional<Found> Take(const Ran& call, CollectiveType type, size_t lane, Nanos next) {
    Label* found = nullptr;
    for (const size_t i : by_issuer_[call.node]) {
      Label& label = labels_[i];
      const bool is_own = label.lane != lane && label.ran.begin < next;
      if (is_own && (found == nullptr || found->ran.end < label.ran.end)) found = &label;
    }
    const std::vector<size_t>& alike = by_type_[type];
    auto at = std::ranges::lower_bound(alike, call.begin, {},
                                       [&](size_t i) { return labels_[i].ran.begin; });
    for (; found == nullptr && at != alike.end() && labels_[*at].ran.begin < next; ++at) {
      if (labels_[*at].lane != lane && !labels_[*at].is_taken) found = &labels_[*at];
    }
    if (found == nullptr) return std::nullopt;
    found->is_taken = true;
    return Found{found->ran, found->issuer ? Evidence::kStated : Evidence::kByTime};
  }

  // Returns the first label on another lane that was active at `moment` and ended so soon after it
  // that a thread that had waited for it for `waited` may have continued at `moment`.
  const Ran* EndingAfter(Nanos moment, size_t lane, Nanos waited) const {
    auto next =
        std::ranges::upper_bound(by_end_, moment, {}, [&](size_t i) { return labels_[i].ran.end; });
    for (; next != by_end_.end() && labels_[*next].ran.end - moment <= kMostWakesEarly; ++next) {
      const Label& label = labels_[*next];
      const Nanos late =
          std::min(label.backend->WakesEarlyAfter(waited), label.backend->most_wakes_early);
      if (label.ran.end - moment > late) continue;
      if (label.lane != lane && label.ran.begin < moment) return &label.ran;
    }
    return nullptr;
  }

 private:
  static Nanos BeginOf(const Label& label) { return label.ran.begin; }

  std::vector<Label> labels_;   // by begin
  std::vector<size_t> by_end_;  // indices into `labels_`, as below
  std::map<NodeId, std::vector<size_t>> by_issuer_;
  std::map<CollectiveType, std::vector<size_t>> by_type_;  // those without an issuer
};

// A node before which its lane was idle.
struct Gap {
  size_t lane;
  NodeId node;
  std::optional<Nanos> begin;  // nullopt: no previous work on the lane
  Nanos end;
};

std::vector<Gap> FindGaps(const Trace& tree, std::span<const NodeTime> times,
                          const std::vector<std::vector<Ran>>& lanes) {
  std::vector<Gap> gaps;
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    std::optional<Nanos> busy_until;
    for (const Ran& one : lanes[lane]) {
      if (RunsBesideItsThread(tree, one.node)) continue;
      const std::string_view name = tree.name(one.node);
      // The wait, if any, begins here: the next node may follow other work.
      if (WaitsForCommunication(name)) {
        busy_until = std::max(busy_until.value_or(one.begin), one.begin);
        continue;
      }
      const bool waited = !busy_until || one.begin - *busy_until > kThreadGap;
      if (waited && !IssuerOfLabel(tree, one.node)) {
        gaps.push_back({lane, one.node, busy_until, one.begin});
      }
      // ATen operators and operators that begin communications wait for no other thread.
      const bool works = name.starts_with("aten::") || IsC10dOperator(name) ||
                         !HasChildOnLane(tree, times, one.node);
      // Nodes opened by the first node after a gap belong to the same gap.
      const Nanos until = works ? one.end : waited ? one.begin : *busy_until;
      busy_until = std::max(busy_until.value_or(until), until);
    }
  }
  return gaps;
}

// The last node to end, as time advances. On Gloo's threads only labels and nodes after them count:
// nobody waits for a part of a collective.
class LastEnded {
 public:
  LastEnded(const Trace& tree, const std::vector<std::vector<Ran>>& lanes) : lanes_(lanes) {
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      const auto is_label = [&](const Ran& one) { return IsHostThreadLabel(tree.name(one.node)); };
      const auto is_call = [&](const Ran& one) { return IsCommOperator(tree.name(one.node)); };
      const bool is_gloo =
          std::ranges::any_of(lanes[lane], is_label) && std::ranges::none_of(lanes[lane], is_call);
      Nanos collective_until{INT64_MIN};
      for (size_t i = 0; i < lanes[lane].size(); ++i) {
        const Ran& one = lanes[lane][i];
        if (is_label(one)) collective_until = std::max(collective_until, one.end);
        const bool is_part = is_gloo && !is_label(one) && one.begin < collective_until;
        if (!is_part) ends_.push_back({lane, i});
      }
    }
    // Among several lanes the first one counts as the last.
    std::ranges::sort(ends_, {}, [&](At at) {
      return std::tuple(ran(at).end, lanes.size() - at.lane, at.index);
    });
  }

  // Advances to `moment`, which must not decrease.
  void AdvanceTo(Nanos moment) {
    for (; next_ < ends_.size() && ran(ends_[next_]).end <= moment; ++next_) {
      if (last_ && last_->lane != ends_[next_].lane) before_ = last_;
      last_ = ends_[next_];
    }
  }

  // Returns the node that ended last on any lane but `lane`.
  const Ran* Elsewhere(size_t lane) const {
    const std::optional<At>& found = last_ && last_->lane == lane ? before_ : last_;
    return found ? &ran(*found) : nullptr;
  }

 private:
  struct At {
    size_t lane;
    size_t index;
  };
  const Ran& ran(At at) const { return lanes_[at.lane][at.index]; }

  const std::vector<std::vector<Ran>>& lanes_;
  std::vector<At> ends_;  // in order of end
  size_t next_ = 0;
  std::optional<At> last_;
  std::optional<At> before_;  // the last one on another lane
};

// Returns the storages for the results of a collective.
std::set<uint64_t> ResultsOf(const Trace& tree, NodeId call) {
  std::set<uint64_t> storages;
  const std::string_view schema = tree.text(tree.op_schema(call));
  const std::span<const Value> inputs = tree.inputs(call);
  for (const std::string_view name : kResultArguments) {
    const auto at = ArgumentPosition(schema, name);
    if (!at || *at >= inputs.size()) continue;
    ForEachTensor(tree, inputs.subspan(*at, 1),
                  [&](TensorId tensor) { storages.insert(tree.tensor(tensor).storage); });
  }
  storages.erase(0);
  return storages;
}

// Returns the idle time of the lane; 0 if it had no previous work.
Nanos IdleTime(const Gap& gap) { return gap.begin ? gap.end - *gap.begin : Nanos{}; }

// Waits for Gloo collectives, by labels on other lanes: of the next node on a thread after a
// synchronous call, even without an idle time, and of the first node that uses the results of a
// collective. Also waits of the next node on a thread after the label of its own send or receive.
class CollectiveWaits {
 public:
  CollectiveWaits(const Trace& tree, std::span<const NodeTime> times,
                  const std::vector<std::vector<Ran>>& lanes, std::span<const Gap> gaps,
                  GlooLabels& gloo)
      : tree_(tree), times_(times), lanes_(lanes) {
    if (gloo.empty()) return;
    for (const Gap& gap : gaps) idle_.emplace(gap.node, IdleTime(gap));
    FindCalls();
    for (const Call& call : calls_) AddCall(call, gloo);
    FindUses();
    for (const std::vector<Ran>& ran : lanes_) AddMessages(ran);
  }

  const std::vector<OrderEdge>& edges() const { return edges_; }
  // Returns true if the node's wait, or the label's waiter, is already known.
  bool Has(NodeId node, NodeId label) const {
    return waiting_.contains(node) || awaited_.contains(label);
  }
  bool HasEdge(NodeId node, NodeId label) const { return pairs_.contains({node, label}); }

 private:
  struct Call {
    size_t lane;
    size_t index;
  };
  struct Pending {
    Ran call;
    Ran label;
    LaneId label_lane;
    Evidence evidence = Evidence::kByMemory;
    std::optional<Nanos> wait;  // begin of the program's wait for these results
  };

  const Ran& RanAt(const Call& at) const { return lanes_[at.lane][at.index]; }

  void FindCalls() {
    for (size_t lane = 0; lane < lanes_.size(); ++lane) {
      for (size_t i = 0; i < lanes_[lane].size(); ++i) {
        const std::string_view name = tree_.name(lanes_[lane][i].node);
        const bool is_call = IsC10dOperator(name) && !PointToPointFromName(name);
        if (is_call) calls_.push_back({lane, i});
        if (!WaitsForCommunication(name)) continue;
        const Nanos end = lanes_[lane][i].end;
        const auto next = std::ranges::lower_bound(lanes_[lane], end, {}, &Ran::begin);
        if (next != lanes_[lane].end()) after_waits_.emplace(lanes_[lane][i].node, *next);
      }
    }
    std::ranges::stable_sort(calls_, {}, [&](const Call& call) { return RanAt(call).begin; });
  }

  void AddCall(const Call& call, GlooLabels& gloo) {
    const std::vector<Ran>& ran = lanes_[call.lane];
    const Ran& self = RanAt(call);
    size_t next = call.index + 1;
    const auto waits_itself = [&](const Ran& one) {
      return WaitsForCommunication(tree_.name(one.node));
    };
    while (next < ran.size() && (ran[next].begin < self.end || waits_itself(ran[next]))) ++next;
    const bool waits = IsSynchronous(tree_, self.node) && next < ran.size();
    const auto label = gloo.Take(self, GlooLabels::TypeOf(tree_.name(self.node)), call.lane,
                                 waits ? ran[next].begin : Nanos{INT64_MAX});
    if (!label) return;
    if (waits) {
      Add({ran[next].node, label->ran.node, OrderReason::kCollective, label->evidence});
      return;
    }
    for (const uint64_t storage : ResultsOf(tree_, self.node)) {
      pending_[storage].push_back({.call = self,
                                   .label = label->ran,
                                   .label_lane = times_[label->ran.node.index()].lane,
                                   .evidence = std::max(label->evidence, Evidence::kByMemory)});
    }
  }

  // Notes which collectives the program waits for explicitly: of those with the same storage, the
  // last one before the wait.
  void NoteWaits(std::span<const Ran> all) {
    for (const Ran& wait : all) {
      if (!WaitsForCommunication(tree_.name(wait.node))) continue;
      ForEachTensor(tree_, tree_.inputs(wait.node), [&](TensorId tensor) {
        const auto found = pending_.find(tree_.tensor(tensor).storage);
        if (found == pending_.end()) return;
        for (Pending& one : found->second | std::views::reverse) {
          if (wait.begin < one.call.end) continue;
          if (!one.wait) one.wait = wait.begin;
          return;
        }
      });
    }
  }

  // A node that uses results before an explicit wait, or long before the label ends, did not wait:
  // it takes a view of them. A later one may wait.
  void FindUses() {
    if (pending_.empty()) return;
    std::vector<Ran> all;
    for (const std::vector<Ran>& ran : lanes_) all.insert(all.end(), ran.begin(), ran.end());
    std::ranges::stable_sort(all, {}, &Ran::begin);
    NoteWaits(all);
    for (const Ran& user : all) {
      if (IsHostThreadLabel(tree_.name(user.node))) continue;
      ForEachTensor(tree_, tree_.inputs(user.node), [&](TensorId tensor) {
        const auto found = pending_.find(tree_.tensor(tensor).storage);
        if (found == pending_.end()) return;
        std::erase_if(found->second, [&](const Pending& one) {
          if (user.begin < one.call.end || user.begin <= one.label.begin) return false;
          if (one.wait && user.begin < *one.wait) return false;
          // Part of the collective.
          if (times_[user.node.index()].lane == one.label_lane) return false;
          const CommBackend& backend = *BackendOfLabel(tree_.name(one.label.node));
          // The node after a wait continues with the results.
          const auto after = after_waits_.find(user.node);
          const Ran& waiter = after == after_waits_.end() ? user : after->second;
          const auto idle = idle_.find(waiter.node);
          const Nanos waited = idle == idle_.end() ? Nanos{} : idle->second;
          const Nanos late = std::max(backend.WakesEarlyAfter(waited), backend.most_wakes_early);
          if (one.label.end - waiter.begin > late) return false;
          Add({waiter.node, one.label.node, OrderReason::kUseOfResult, one.evidence});
          return true;
        });
      });
    }
  }

  // Adds waits for sends and receives: the thread has waited for them when their labels end.
  void AddMessages(const std::vector<Ran>& ran) {
    for (const Ran& message : ran) {
      if (!RunsBesideItsThread(tree_, message.node)) continue;
      auto next = std::ranges::lower_bound(ran, message.end, {}, &Ran::begin);
      const auto is_none = [&](NodeId node) {
        return RunsBesideItsThread(tree_, node) || WaitsForCommunication(tree_.name(node));
      };
      while (next != ran.end() && is_none(next->node)) ++next;
      if (next == ran.end()) continue;
      Add({next->node, message.node, OrderReason::kMessage, Evidence::kByThread});
    }
  }

  void Add(const OrderEdge& edge) {
    if (!pairs_.emplace(edge.node, edge.before).second) return;
    waiting_.insert(edge.node);
    awaited_.insert(edge.before);
    edges_.push_back(edge);
  }

  const Trace& tree_;
  std::span<const NodeTime> times_;
  const std::vector<std::vector<Ran>>& lanes_;
  std::vector<Call> calls_;                           // by begin
  std::map<uint64_t, std::vector<Pending>> pending_;  // by storage
  std::map<NodeId, Ran> after_waits_;                 // next node on the thread, by wait
  std::map<NodeId, Nanos> idle_;                      // IdleTime of nodes after a gap
  std::set<NodeId> waiting_;
  std::set<NodeId> awaited_;
  std::set<std::pair<NodeId, NodeId>> pairs_;
  std::vector<OrderEdge> edges_;
};

// Adds the edges between these lanes.
void AddEdges(const Trace& tree, std::span<const NodeTime> times,
              const std::vector<std::vector<Ran>>& lanes, std::vector<OrderEdge>& edges) {
  std::vector<Gap> gaps = FindGaps(tree, times, lanes);
  std::ranges::stable_sort(gaps, {}, &Gap::end);
  LastEnded last(tree, lanes);
  GlooLabels gloo(tree, lanes);
  const CollectiveWaits known(tree, times, lanes, gaps, gloo);
  edges.insert(edges.end(), known.edges().begin(), known.edges().end());
  const auto add = [&](const Gap& waited, const Ran& ended) {
    // A node may end while a thread works on its own, but hardly just before the thread continues.
    const Nanos apart = std::max(waited.end - ended.end, ended.end - waited.end);
    const bool is_chance = apart > kWakesEarly && known.Has(waited.node, ended.node);
    if (is_chance) return false;
    if (!known.HasEdge(waited.node, ended.node)) {
      edges.push_back({waited.node, ended.node, OrderReason::kIdleThread, Evidence::kByTime});
    }
    return true;
  };
  for (const Gap& waited : gaps) {
    last.AdvanceTo(waited.end);
    const Ran* late =
        waited.begin ? gloo.EndingAfter(waited.end, waited.lane, IdleTime(waited)) : nullptr;
    if (late != nullptr && add(waited, *late)) continue;
    const Ran* found = last.Elsewhere(waited.lane);
    if (found == nullptr || (waited.begin && found->end <= *waited.begin)) continue;
    add(waited, *found);
  }
}

}  // namespace

std::vector<OrderEdge> ThreadEdges(const Trace& tree, std::span<const NodeTime> times) {
  std::vector<OrderEdge> edges;
  AddEdges(tree, times, RanByLane(tree, times), edges);
  return edges;
}

std::vector<OrderEdge> ThreadEdgesByProcess(const Trace& trace, std::span<const NodeTime> times) {
  std::map<StringId, std::vector<std::vector<Ran>>> processes;
  for (std::vector<Ran>& ran : RanByLane(trace, times)) {
    const LaneId lane = times[ran.front().node.index()].lane;
    processes[trace.lane(lane).process].push_back(std::move(ran));
  }
  std::vector<OrderEdge> edges;
  for (const auto& [process, lanes] : processes) AddEdges(trace, times, lanes, edges);
  return edges;
}

}  // namespace etude
