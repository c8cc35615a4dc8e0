#include "src/transform/thread_edges.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

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

// Labels of Gloo's, by when they end.
class GlooEnds {
 public:
  GlooEnds(const Trace& tree, const std::vector<std::vector<Ran>>& lanes) {
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      for (const Ran& one : lanes[lane]) {
        if (IsGlooLabel(tree.name(one.node))) labels_.push_back({one, lane});
      }
    }
    std::ranges::stable_sort(labels_, {}, [](const Label& label) { return label.ran.end; });
  }

  // The first that was at work at `moment`, on another lane, and ended soon after.
  const Ran* EndingAfter(Nanos moment, size_t lane) const {
    auto next = std::ranges::upper_bound(labels_, moment, {},
                                         [](const Label& label) { return label.ran.end; });
    for (; next != labels_.end() && next->ran.end - moment <= kGlooSlack; ++next) {
      if (next->lane != lane && next->ran.begin < moment) return &next->ran;
    }
    return nullptr;
  }

 private:
  struct Label {
    Ran ran;
    size_t lane = 0;
  };
  std::vector<Label> labels_;
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

// Adds the edges between these lanes.
void AddEdges(const Trace& tree, std::span<const NodeTime> times,
              const std::vector<std::vector<Ran>>& lanes, std::vector<OrderEdge>& edges) {
  if (lanes.size() < 2) return;
  std::vector<Gap> gaps = FindGaps(tree, times, lanes);
  std::ranges::stable_sort(gaps, {}, &Gap::end);
  LastEnded last(lanes);
  const GlooEnds gloo(tree, lanes);
  for (const Gap& waited : gaps) {
    last.AdvanceTo(waited.end);
    if (const Ran* late = waited.begin ? gloo.EndingAfter(waited.end, waited.lane) : nullptr) {
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
