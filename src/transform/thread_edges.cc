#include "src/transform/thread_edges.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "src/trace/callers.h"
#include "src/trace/enums.h"
#include "src/trace/operator_name.h"

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

// What ran on each lane, in the order in which it began: callers before what they called.
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

// Labels of Gloo's, which last as long as the collective does on a thread of its own.
class GlooLabels {
 public:
  struct Label {
    Ran ran;
    size_t lane = 0;
    CollectiveType type = CollectiveType::kUnknown;
    NodeId issuer;
    bool waited_for = false;
  };

  GlooLabels(const Trace& tree, const std::vector<std::vector<Ran>>& lanes) {
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      for (const Ran& one : lanes[lane]) {
        const std::string_view name = tree.name(one.node);
        if (!IsGlooLabel(name)) continue;
        labels_.push_back({.ran = one,
                           .lane = lane,
                           .type = TypeOf(CommOfLabel(name)),
                           .issuer = IssuerOf(tree, one.node)});
      }
    }
    std::ranges::stable_sort(labels_, {}, BeginOf);
    by_end_.resize(labels_.size());
    std::iota(by_end_.begin(), by_end_.end(), size_t{0});
    std::ranges::stable_sort(by_end_, {}, [&](size_t i) { return labels_[i].ran.end; });
  }

  bool empty() const { return labels_.empty(); }

  static CollectiveType TypeOf(std::string_view name) {
    return CollectiveFromName(name).value_or(CollectiveType::kUnknown);
  }

  // The label of a call that was waited for on `lane` before `next` began there: its own, the last
  // to end, as far as the trace says whose it is; else the first of its type that began after the
  // call and that nothing has waited for.
  const Ran* Take(const Ran& call, CollectiveType type, size_t lane, Nanos next) {
    // Threads of native captures have clocks of their own.
    constexpr Nanos kClockError{1'000'000};
    Label* own = nullptr;
    Label* likely = nullptr;
    auto label = std::ranges::lower_bound(labels_, call.begin - kClockError, {}, BeginOf);
    for (; label != labels_.end() && label->ran.begin < next; ++label) {
      if (label->lane == lane || label->waited_for) continue;
      if (label->issuer == call.node && (own == nullptr || own->ran.end < label->ran.end)) {
        own = &*label;
      }
      const bool may_be = !label->issuer && label->type == type && label->ran.begin >= call.begin;
      if (may_be && likely == nullptr) likely = &*label;
    }
    Label* const found = own != nullptr ? own : likely;
    if (found == nullptr) return nullptr;
    found->waited_for = true;
    return &found->ran;
  }

  // The first that was at work at `moment`, on another lane, and ended soon after.
  const Ran* EndingAfter(Nanos moment, size_t lane, Nanos slack) const {
    auto next =
        std::ranges::upper_bound(by_end_, moment, {}, [&](size_t i) { return labels_[i].ran.end; });
    for (; next != by_end_.end() && labels_[*next].ran.end - moment <= slack; ++next) {
      const Label& label = labels_[*next];
      if (label.lane != lane && label.ran.begin < moment) return &label.ran;
    }
    return nullptr;
  }

 private:
  static Nanos BeginOf(const Label& label) { return label.ran.begin; }

  static NodeId IssuerOf(const Trace& tree, NodeId label) {
    if (const NodeId issuer = IssuerOfLabel(tree, label)) return issuer;
    const NodeId above = tree.parent(label);
    return above && tree.name(above).starts_with("c10d::") ? above : NodeId::None();
  }

  std::vector<Label> labels_;   // by when they begin
  std::vector<size_t> by_end_;  // in `labels_`
};

// A node before which its lane was idle.
struct Gap {
  size_t lane;
  NodeId node;
  std::optional<Nanos> begin;  // nullopt: the lane did nothing before
  Nanos end;
};

std::vector<Gap> FindGaps(const Trace& tree, std::span<const NodeTime> times,
                          const std::vector<std::vector<Ran>>& lanes) {
  std::vector<Gap> gaps;
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    std::optional<Nanos> busy_until;
    for (const Ran& one : lanes[lane]) {
      const bool waited = !busy_until || one.begin - *busy_until > kThreadGap;
      if (waited) gaps.push_back({lane, one.node, busy_until, one.begin});
      const bool is_leaf = !HasChildOnLane(tree, times, one.node);
      // What a node opens after a gap is the same gap.
      const Nanos until = is_leaf ? one.end : waited ? one.begin : *busy_until;
      busy_until = std::max(busy_until.value_or(until), until);
    }
  }
  return gaps;
}

// For every lane the last node to begin of those that have ended, as time goes on.
class LastEnded {
 public:
  explicit LastEnded(const std::vector<std::vector<Ran>>& lanes)
      : lanes_(lanes), last_(lanes.size()) {
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      for (size_t i = 0; i < lanes[lane].size(); ++i) ends_.push_back({lane, i});
    }
    std::ranges::stable_sort(ends_, {}, [&](At at) { return ran(at).end; });
  }

  // Goes on to `moment`, which must not be before the last one.
  void AdvanceTo(Nanos moment) {
    for (; next_ < ends_.size() && ran(ends_[next_]).end <= moment; ++next_) {
      const At at = ends_[next_];
      std::optional<size_t>& last = last_[at.lane];
      if (last && *last > at.index) continue;
      if (last) latest_.erase({ran({at.lane, *last}).end, at.lane});
      last = at.index;
      latest_.insert({ran(at).end, at.lane});
    }
  }

  // The one that ended last on any lane but `lane`.
  const Ran* Elsewhere(size_t lane) const {
    auto found = latest_.begin();
    if (found != latest_.end() && found->lane == lane) ++found;
    return found == latest_.end() ? nullptr : &ran({found->lane, *last_[found->lane]});
  }

 private:
  struct At {
    size_t lane;
    size_t index;
  };
  struct End {
    Nanos end;
    size_t lane;

    // Later ones first.
    friend bool operator<(const End& a, const End& b) {
      return a.end != b.end ? b.end < a.end : a.lane < b.lane;
    }
  };
  const Ran& ran(At at) const { return lanes_[at.lane][at.index]; }

  const std::vector<std::vector<Ran>>& lanes_;
  std::vector<At> ends_;  // in the order in which nodes end
  size_t next_ = 0;
  std::vector<std::optional<size_t>> last_;  // by lane
  std::set<End> latest_;                     // of each of them
};

// What threads waited for where they called collectives so that they wait at once: what came next
// on the thread, and the label. Whether it had to wait long does not matter.
std::map<NodeId, NodeId> SynchronousWaits(const Trace& tree,
                                          const std::vector<std::vector<Ran>>& lanes,
                                          GlooLabels& gloo) {
  std::map<NodeId, NodeId> waits;
  if (gloo.empty()) return waits;
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    const std::vector<Ran>& ran = lanes[lane];
    for (size_t i = 0; i < ran.size(); ++i) {
      const std::string_view name = tree.name(ran[i].node);
      if (!name.starts_with("c10d::") || !IsSynchronous(tree, ran[i].node)) continue;
      size_t next = i + 1;
      while (next < ran.size() && ran[next].begin < ran[i].end) ++next;
      if (next == ran.size()) continue;
      const Ran* label = gloo.Take(ran[i], GlooLabels::TypeOf(name), lane, ran[next].begin);
      if (label != nullptr) waits.emplace(ran[next].node, label->node);
    }
  }
  return waits;
}

// By how much later than `waited` a label may have ended that was waited for: Gloo's thread is one
// of those that want to run when it has woken the other. A small part of what was waited.
Nanos SlackOf(const Gap& waited) {
  constexpr Nanos kMost{3'000'000};
  constexpr int64_t kShare = 8;
  if (!waited.begin) return kGlooSlack;
  return std::clamp(Nanos{(waited.end - *waited.begin).count / kShare}, kGlooSlack, kMost);
}

// Adds the edges between these lanes.
void AddEdges(const Trace& tree, std::span<const NodeTime> times,
              const std::vector<std::vector<Ran>>& lanes, std::vector<OrderEdge>& edges) {
  if (lanes.size() < 2) return;
  std::vector<Gap> gaps = FindGaps(tree, times, lanes);
  std::ranges::stable_sort(gaps, {}, &Gap::end);
  LastEnded last(lanes);
  GlooLabels gloo(tree, lanes);
  const std::map<NodeId, NodeId> known = SynchronousWaits(tree, lanes, gloo);
  for (const auto& [node, label] : known) edges.push_back({node, label});
  for (const Gap& waited : gaps) {
    if (known.contains(waited.node)) continue;
    last.AdvanceTo(waited.end);
    const Ran* late =
        waited.begin ? gloo.EndingAfter(waited.end, waited.lane, SlackOf(waited)) : nullptr;
    if (late != nullptr) {
      edges.push_back({waited.node, late->node});
      continue;
    }
    const Ran* found = last.Elsewhere(waited.lane);
    if (found == nullptr || (waited.begin && found->end <= *waited.begin)) continue;
    edges.push_back({waited.node, found->node});
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
