#include "src/analysis/graph_time.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "src/analysis/activity.h"
#include "src/analysis/longest_path.h"
#include "src/analysis/run_graph.h"

namespace etude {
namespace {

std::string LaneText(const Trace& trace, NodeId node) {
  const LaneId id = trace.lane_id(node);
  if (!id) return "unknown";
  const Lane& lane = trace.lane(id);
  if (lane.stream >= 0) {
    return lane.device < 0 ? fmt::format("stream {}", lane.stream)
                           : fmt::format("device {} stream {}", lane.device, lane.stream);
  }
  return lane.thread ? fmt::format("thread {}", trace.text(lane.thread)) : "unknown";
}

// The graphs of all ranks as one, by the clock of the first rank.
class JointGraph {
 public:
  JointGraph(std::span<const RecordedRank> ranks, const CommMatch& match)
      : ranks_(ranks), match_(match) {}

  Result<GraphTime> Run() {
    for (size_t i = 0; i < ranks_.size(); ++i) AddRank(i);
    if (times_.empty()) {
      return BadInput("found no node with a start and a duration, expected a recorded job");
    }
    for (const std::vector<CallPlace>& meeting : match_.meetings) Join(meeting);
    for (const auto& [send, receive] : match_.messages) Join({{send, receive}});
    const LongestPath path = FindLongestPath(times_.size(), edges_);
    result_.contradictions += path.dropped;
    result_.simulated = path.length;
    Nanos first = times_.front();
    Nanos last = times_.front();
    for (const Nanos time : times_) {
      first = std::min(first, time);
      last = std::max(last, time);
    }
    result_.recorded = last - first;
    Describe(path, first, last);
    return std::move(result_);
  }

 private:
  struct Step {
    size_t rank = 0;
    NodeId node;
    GapKind gap = GapKind::kHostGap;
  };
  // A node that communicates.
  struct Member {
    size_t rank = 0;
    NodeId node;
    Nanos begin;
    Nanos end;
  };

  void AddRank(size_t number) {
    const Trace& trace = *ranks_[number].trace;
    runs_.push_back(MakeRecordedRun(trace, ranks_[number].waits));
    const RecordedRun& run = runs_.back();
    const auto base = static_cast<uint32_t>(times_.size());
    bases_.push_back(base);
    result_.nodes += run.graph.nodes().size();
    result_.untimed += run.untimed;
    result_.contradictions += run.contradictions;
    // A clock that cannot be compared is one by which the rank begins with the first one.
    if (number == 0 && run.span) first_begin_ = run.span->begin;
    const Nanos begin = run.span ? run.span->begin : Nanos{};
    const Nanos offset = match_.clocks[number].offset.value_or(begin - first_begin_);
    for (uint32_t point = 0; point < run.graph.points(); ++point) {
      times_.push_back(run.TimeOfPoint(trace, point) - offset);
    }
    for (size_t i = 0; i < run.graph.edge_count(); ++i) {
      const PathEdge& edge = run.graph.edge(i);
      const RunStep& step = run.graph.step(i);
      const bool is_delay =
          step.part == PathPart::kLaunchDelay || step.part == PathPart::kQueueWait;
      edges_.push_back({.from = base + edge.from,
                        .to = base + edge.to,
                        .weight = is_delay ? Nanos{} : edge.weight});
      steps_.push_back({.rank = number, .node = step.node, .gap = GapOf(step)});
      if (step.is_own) own_[{number, trace.lane_id(step.node)}].push_back(edges_.size() - 1);
    }
    for (auto& [lane, numbers] : own_) {
      if (lane.first != number) continue;
      std::ranges::stable_sort(numbers, {}, [&](size_t edge) { return times_[edges_[edge].from]; });
    }
  }

  static GapKind GapOf(const RunStep& step) {
    if (step.part == PathPart::kLaunchDelay) return GapKind::kLaunch;
    if (step.part == PathPart::kQueueWait) return GapKind::kQueue;
    return step.beside == PathPart::kHostWait ? GapKind::kHostWait : GapKind::kHostGap;
  }

  // What they do together they begin when the last one has come.
  void Join(const std::vector<CallPlace>& places) {
    if (places.size() < 2) return;
    std::vector<Member> members;
    for (const CallPlace& place : places) {
      const NodeId node = ranks_[place.log].log->calls[place.call].row;
      if (!runs_[place.log].graph.has(node)) return;
      if (!match_.clocks[place.log].offset) {
        ++result_.unaligned;
        return;
      }
      const RunGraph& graph = runs_[place.log].graph;
      members.push_back({.rank = place.log,
                         .node = node,
                         .begin = times_[bases_[place.log] + graph.begin(node)],
                         .end = times_[bases_[place.log] + graph.end(node)]});
    }
    const Member& last = *std::ranges::max_element(members, {}, &Member::begin);
    Nanos shortest = last.end - last.begin;
    for (const Member& member : members) {
      // A call that only hands on what is to be done does not wait for others.
      if (member.end < last.begin) {
        ++result_.apart;
        return;
      }
      shortest = std::min(shortest, member.end - member.begin);
    }
    ++result_.joint;
    const auto meeting = static_cast<uint32_t>(times_.size());
    times_.push_back(last.begin);
    for (const Member& member : members) {
      const RunGraph& graph = runs_[member.rank].graph;
      const uint32_t base = bases_[member.rank];
      TakeOut(member);
      AddEdge(base + graph.begin(member.node), meeting, Nanos{}, member);
      AddEdge(meeting, base + graph.end(member.node), shortest, member);
    }
  }
  void AddEdge(uint32_t from, uint32_t to, Nanos weight, const Member& member) {
    edges_.push_back({from, to, weight});
    steps_.push_back({.rank = member.rank, .node = member.node, .gap = GapKind::kTransfer});
  }
  // The node's own time, and on the host what its callees took.
  void TakeOut(const Member& member) {
    const Trace& trace = *ranks_[member.rank].trace;
    const auto own = own_.find({member.rank, trace.lane_id(member.node)});
    if (own == own_.end()) return;
    const bool on_host = DeviceActivity(trace, member.node) == Activity::kNone;
    const std::vector<size_t>& numbers = own->second;  // in the order of time
    auto at = std::ranges::lower_bound(numbers, member.begin, {},
                                       [&](size_t number) { return times_[edges_[number].from]; });
    for (; at != numbers.end() && times_[edges_[*at].from] < member.end; ++at) {
      const bool is_callee = on_host && times_[edges_[*at].to] <= member.end;
      if (is_callee || steps_[*at].node == member.node) edges_[*at].weight = Nanos{};
    }
  }

  void Describe(const LongestPath& path, Nanos first, Nanos last) {
    std::map<std::tuple<GapKind, size_t, std::string>, GraphTime::Gap> gaps;
    const auto add = [&](GapKind kind, size_t rank, const std::string& lane, Nanos time) {
      if (time == Nanos{}) return;
      GraphTime::Gap& gap = gaps[{kind, rank, lane}];
      gap.kind = kind;
      gap.rank = ranks_[rank].log->rank;
      gap.lane = lane;
      ++gap.count;
      gap.time = gap.time + time;
    };
    for (const uint32_t number : path.edges) {
      const PathEdge& edge = edges_[number];
      const Step& step = steps_[number];
      const Nanos beyond = times_[edge.to] - times_[edge.from] - edge.weight;
      add(step.gap, step.rank, LaneText(*ranks_[step.rank].trace, step.node), beyond);
    }
    if (!path.edges.empty()) {
      const auto lane = [&](uint32_t number) {
        return LaneText(*ranks_[steps_[number].rank].trace, steps_[number].node);
      };
      const uint32_t begin = path.edges.front();
      const uint32_t end = path.edges.back();
      add(GapKind::kUnexplained, steps_[begin].rank, lane(begin),
          times_[edges_[begin].from] - first);
      add(GapKind::kUnexplained, steps_[end].rank, lane(end), last - times_[edges_[end].to]);
    }
    for (auto& [key, gap] : gaps) result_.gaps.push_back(std::move(gap));
    std::ranges::stable_sort(result_.gaps, std::ranges::greater{}, &GraphTime::Gap::time);
  }

  std::span<const RecordedRank> ranks_;
  const CommMatch& match_;
  GraphTime result_;
  Nanos first_begin_;              // of the first rank
  std::vector<RecordedRun> runs_;  // by rank, as all below
  std::vector<uint32_t> bases_;    // their first points
  std::vector<Nanos> times_;       // by point
  std::vector<PathEdge> edges_;
  std::vector<Step> steps_;
  std::map<std::pair<size_t, LaneId>, std::vector<size_t>> own_;
};

}  // namespace

std::string_view Name(GapKind kind) {
  switch (kind) {
    case GapKind::kHostGap: return "host gap";
    case GapKind::kLaunch: return "launch";
    case GapKind::kQueue: return "queue";
    case GapKind::kHostWait: return "host wait";
    case GapKind::kTransfer: return "transfer";
    case GapKind::kUnexplained: return "unexplained";
  }
  return "unexplained";
}

Result<GraphTime> FindGraphTime(std::span<const RecordedRank> ranks, const CommMatch& match) {
  return JointGraph(ranks, match).Run();
}

}  // namespace etude
