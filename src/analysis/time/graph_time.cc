#include "src/analysis/time/graph_time.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "src/run/longest_path.h"

namespace etude {
namespace {

// Joint graph of all ranks, by the clock of the first rank.
class JointGraph {
 public:
  JointGraph(std::span<const RankRun> ranks, const CommMatch& match)
      : ranks_(ranks), match_(match), own_(ranks.size()) {}

  std::optional<GraphTime> Run() {
    for (size_t i = 0; i < ranks_.size(); ++i) AddRank(i);
    if (times_.empty()) return std::nullopt;
    edges_of_ranks_ = edges_.size();
    for (const std::vector<CallPlace>& meeting : match_.meetings) Join(meeting);
    for (const auto& [send, receive] : match_.messages) {
      Join({{send, receive}}, /*is_message=*/true);
    }
    const LongestPath path = FindLongestPath(times_.size(), edges_);
    result_.contradictions += path.dropped;
    result_.simulated = path.length;
    const auto [first, last] = std::ranges::minmax(times_);
    result_.recorded = last - first;
    Describe(path, first, last);
    return std::move(result_);
  }

 private:
  // Meaning of an edge, and its rank.
  struct Step {
    size_t rank = 0;
    uint32_t lane = 0;
    GapKind gap = GapKind::kTransfer;
  };
  // A communication node.
  struct Member {
    size_t rank = 0;
    RankRun::Call call;
    Nanos begin;
    Nanos end;
  };
  // Edges of nodes' own times, by lane in order of time.
  using OwnEdges = std::map<uint32_t, std::vector<size_t>>;

  void AddRank(size_t number) {
    const RankRun& run = ranks_[number];
    const auto base = static_cast<uint32_t>(times_.size());
    bases_.push_back(base);
    first_edges_.push_back(edges_.size());
    result_.nodes += run.times.size() / 2;
    result_.untimed += run.untimed;
    result_.contradictions += run.contradictions;
    const Nanos begin = run.times.empty() ? Nanos{} : std::ranges::min(run.times);
    // A rank whose clock cannot be compared is assumed to begin with the first one.
    if (number == 0) first_begin_ = begin;
    const Nanos offset = match_.clocks[number].offset.value_or(begin - first_begin_);
    for (const Nanos time : run.times) times_.push_back(time - offset);
    for (size_t i = 0; i < run.edges.size(); ++i) {
      const PathEdge& edge = run.edges[i];
      const RankRun::Step& step = run.steps[i];
      if (step.is_woken) woken_[{number, step.node}].push_back(edges_.size());
      edges_.push_back({.from = base + edge.from, .to = base + edge.to, .weight = edge.weight});
    }
  }

  Step StepOf(size_t edge) const {
    if (edge >= edges_of_ranks_) return joint_steps_[edge - edges_of_ranks_];
    const auto above = std::ranges::upper_bound(first_edges_, edge);
    const auto rank = static_cast<size_t>(above - first_edges_.begin()) - 1;
    const RankRun::Step& step = ranks_[rank].steps[edge - first_edges_[rank]];
    return {.rank = rank, .lane = step.lane, .gap = step.gap};
  }

  // Joins the calls of a communication: they begin when the last one has joined. With one clock,
  // the end of each after that is known; otherwise that of the quickest counts. A message is
  // complete when the first of both ends is done: the other may have joined long before, or may
  // wait for it much later.
  void Join(const std::vector<CallPlace>& places, bool is_message = false) {
    if (places.size() < 2) return;
    std::vector<Member> members;
    for (const CallPlace& place : places) {
      const std::optional<RankRun::Call>& call = ranks_[place.log].calls[place.call];
      if (!call) return;
      if (!match_.clocks[place.log].offset) {
        ++result_.unaligned;
        return;
      }
      const uint32_t begin = BeginOf(place.log, *call);
      members.push_back(
          {.rank = place.log, .call = *call, .begin = times_[begin], .end = times_[begin + 1]});
    }
    const Member& last = *std::ranges::max_element(members, {}, &Member::begin);
    Nanos shortest = last.end - last.begin;
    for (const Member& member : members) {
      // A call that only hands work over does not wait for others.
      if (member.end < last.begin) {
        ++result_.apart;
        return;
      }
      shortest = std::min(shortest, member.end - (is_message ? last.begin : member.begin));
    }
    ++result_.joint;
    const auto meeting = static_cast<uint32_t>(times_.size());
    times_.push_back(last.begin);
    for (const Member& member : members) {
      TakeOut(member);
      const uint32_t begin = BeginOf(member.rank, member.call);
      AddEdge(begin, meeting, Nanos{}, member);
      const Nanos passed = match_.one_clock ? member.end - last.begin : shortest;
      AddEdge(meeting, begin + 1, passed, member);
      for (const size_t number : WokenBy(member)) {
        PathEdge& edge = edges_[number];
        edge.from = meeting;
        edge.weight = std::max(passed - (member.end - times_[edge.to]), Nanos{});
      }
    }
  }
  // Returns the point of a node's begin; its end is the next point.
  uint32_t BeginOf(size_t rank, const RankRun::Call& call) const {
    return bases_[rank] + 2 * call.node;
  }
  void AddEdge(uint32_t from, uint32_t to, Nanos weight, const Member& member) {
    edges_.push_back({from, to, weight});
    joint_steps_.push_back({.rank = member.rank, .lane = member.call.lane});
  }
  // Removes the node's own time and, on the host, that of its callees.
  void TakeOut(const Member& member) {
    const RankRun& run = ranks_[member.rank];
    const std::vector<size_t>& numbers = OwnEdgesOf(member.rank)[member.call.lane];
    auto at = std::ranges::lower_bound(numbers, member.begin, {},
                                       [&](size_t number) { return times_[edges_[number].from]; });
    for (; at != numbers.end() && times_[edges_[*at].from] < member.end; ++at) {
      const bool is_callee = member.call.has_callees && times_[edges_[*at].to] <= member.end;
      const RankRun::Step& step = run.steps[*at - first_edges_[member.rank]];
      if (is_callee || step.node == member.call.node) edges_[*at].weight = Nanos{};
    }
  }
  // Returns the edges to points that continued before the member's end.
  std::span<const size_t> WokenBy(const Member& member) const {
    const auto found = woken_.find({member.rank, member.call.node});
    return found == woken_.end() ? std::span<const size_t>() : std::span(found->second);
  }
  OwnEdges& OwnEdgesOf(size_t rank) {
    OwnEdges& own = own_[rank];
    if (!own.empty()) return own;
    const RankRun& run = ranks_[rank];
    for (size_t i = 0; i < run.steps.size(); ++i) {
      if (run.steps[i].is_own) own[run.steps[i].lane].push_back(first_edges_[rank] + i);
    }
    for (auto& [lane, numbers] : own) {
      std::ranges::stable_sort(numbers, {}, [&](size_t edge) { return times_[edges_[edge].from]; });
    }
    return own;
  }

  void Describe(const LongestPath& path, Nanos first, Nanos last) {
    std::map<std::tuple<GapKind, size_t, std::string>, GraphTime::Gap> gaps;
    const auto add = [&](GapKind kind, const Step& step, Nanos time) {
      if (time == Nanos{}) return;
      const RankRun& run = ranks_[step.rank];
      GraphTime::Gap& gap = gaps[{kind, step.rank, run.lanes[step.lane]}];
      gap.kind = kind;
      gap.rank = run.log.rank;
      gap.lane = run.lanes[step.lane];
      ++gap.count;
      gap.time = gap.time + time;
    };
    for (const uint32_t number : path.edges) {
      const PathEdge& edge = edges_[number];
      const Step step = StepOf(number);
      add(step.gap, step, times_[edge.to] - times_[edge.from] - edge.weight);
    }
    if (!path.edges.empty()) {
      const uint32_t begin = path.edges.front();
      const uint32_t end = path.edges.back();
      add(GapKind::kUnexplained, StepOf(begin), times_[edges_[begin].from] - first);
      add(GapKind::kUnexplained, StepOf(end), last - times_[edges_[end].to]);
    }
    for (auto& [key, gap] : gaps) result_.gaps.push_back(std::move(gap));
    std::ranges::stable_sort(result_.gaps, std::ranges::greater{}, &GraphTime::Gap::time);
  }

  std::span<const RankRun> ranks_;
  const CommMatch& match_;
  GraphTime result_;
  Nanos first_begin_;                // of the first rank
  std::vector<uint32_t> bases_;      // first points, by rank
  std::vector<size_t> first_edges_;  // by rank
  std::vector<Nanos> times_;         // by point
  std::vector<PathEdge> edges_;
  size_t edges_of_ranks_ = 0;  // followed by edges of joint work
  std::vector<Step> joint_steps_;
  std::vector<OwnEdges> own_;                                         // by rank; empty until needed
  std::map<std::pair<size_t, uint32_t>, std::vector<size_t>> woken_;  // edges, by rank and node
};

}  // namespace

std::optional<GraphTime> FindGraphTime(std::span<const RankRun> ranks, const CommMatch& match) {
  return JointGraph(ranks, match).Run();
}

std::optional<GraphTime> FindGraphTime(const RankRun& run) {
  CommMatch alone;
  alone.clocks.push_back({.rank = run.log.rank, .offset = Nanos{}});
  return FindGraphTime({&run, 1}, alone);
}

std::optional<GraphTime> FindGraphTime(std::span<const RankRun> ranks) {
  std::set<int64_t> numbers;
  std::vector<CommLog> logs;
  for (const RankRun& run : ranks) {
    if (!numbers.insert(run.log.rank).second) return std::nullopt;
    logs.push_back(run.log);
  }
  return FindGraphTime(ranks, MatchComms(logs));
}

}  // namespace etude
