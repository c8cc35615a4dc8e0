#include "src/sim/sim_path.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "src/base/csr.h"
#include "src/sim/travel.h"

namespace etude {
namespace {

struct NodeOfRank {
  int64_t rank = 0;
  uint32_t node = 0;

  friend auto operator<=>(const NodeOfRank&, const NodeOfRank&) = default;
};

class PathFinder {
 public:
  PathFinder(const SimMachine& machine, const SimWorkload& workload, const SimResult& result)
      : machine_(machine), workload_(workload), result_(result), travel_(machine) {}

  SimPath Find() {
    SimPath path;
    std::optional<NodeOfRank> last = LastOfAll();
    if (!last) return path;
    path.length = EndOf(*last);
    std::vector<SimPath::Stretch>& stretches = path.stretches;
    int64_t until = path.length;
    NodeOfRank at = *last;
    while (until > 0) {
      const NodeOfRank source = WorksFor(at);
      const int64_t begin = std::min(BeginOf(source), until);
      const size_t first = stretches.size();
      AddWork(source, begin, until, stretches);
      if (source.rank != at.rank) ++path.hops;
      until = begin;
      visited_.insert(at);
      visited_.insert(source);
      const Before before = BeforeOf(source, until);
      if (stretches.size() > first) {
        SimPath::Stretch& node = stretches.back();
        node.cause = before.cause;
        node.held = before.held;
        node.awaited = std::max<int64_t>(0, begin - BeginOf(at));
      }
      if (!before.node) {
        if (until > 0) stretches.push_back({.rank = source.rank, .begin = 0, .end = until});
        break;
      }
      at = {source.rank, *before.node};
      const int64_t end = EndOf(at);
      if (end < until) {
        stretches.push_back(
            {.rank = source.rank, .begin = end, .end = until, .cause = SimCause::kFreed});
        until = end;
      }
    }
    std::ranges::reverse(stretches);
    for (const SimPath::Stretch& stretch : stretches) {
      path.parts[static_cast<size_t>(stretch.part)] += stretch.length();
    }
    return path;
  }

 private:
  // What let a node begin; nullopt: nothing is known.
  struct Before {
    std::optional<uint32_t> node;
    SimCause cause = SimCause::kStart;
    int64_t held = 0;
  };
  using Key = std::tuple<bool, int64_t, int64_t, int64_t>;  // sends; partner, tag, bytes

  const SimRank& SelfOf(int64_t rank) const { return workload_.ranks[static_cast<size_t>(rank)]; }
  const SimProgram& ProgramOf(int64_t rank) const { return *SelfOf(rank).program; }
  const SimNode& NodeOf(const NodeOfRank& at) const { return ProgramOf(at.rank).nodes[at.node]; }
  int64_t BeginOf(const NodeOfRank& at) const { return result_.OfRank(at.rank).begins[at.node]; }
  int64_t EndOf(const NodeOfRank& at) const { return result_.OfRank(at.rank).ends[at.node]; }
  uint32_t ClassOf(int64_t rank) const { return result_.class_of[static_cast<size_t>(rank)]; }

  std::optional<NodeOfRank> LastOfAll() const {
    std::optional<NodeOfRank> last;
    std::vector<bool> seen(result_.ranks.size());
    for (int64_t rank = 0; rank < static_cast<int64_t>(result_.class_of.size()); ++rank) {
      if (seen[ClassOf(rank)]) continue;
      seen[ClassOf(rank)] = true;
      const std::vector<int64_t>& ends = result_.OfRank(rank).ends;
      const auto most = std::ranges::max_element(ends);
      if (most == ends.end() || *most < 0) continue;
      const NodeOfRank node{rank, static_cast<uint32_t>(most - ends.begin())};
      if (!last || *most > EndOf(*last)) last = node;
    }
    return last;
  }

  // ---- who determined the end of a node

  // The node that ended when this one did and began last: itself, that of the last rank to begin
  // the collective, or the other end of the message.
  NodeOfRank WorksFor(const NodeOfRank& at) {
    if (machine_.system.replay_only) return at;
    const SimNode& node = NodeOf(at);
    if (node.kind == NodeKind::kCollective && !machine_.system.Replays(node)) {
      return LastToBegin(at);
    }
    const bool sends = node.kind == NodeKind::kSend;
    if (!sends && node.kind != NodeKind::kRecv) return at;
    if (sends && !machine_.system.rendezvous) return at;
    const std::optional<NodeOfRank> other = OtherEnd(at);
    if (!other || BeginOf(*other) < 0 || EndOf(*other) < 0) return at;
    // A receive that came after the message took no time.
    if (!sends && !machine_.system.rendezvous) {
      return EndOf(*other) > BeginOf(at) && EndOf(*other) <= EndOf(at) ? *other : at;
    }
    return BeginOf(*other) > BeginOf(at) ? *other : at;
  }

  bool IsOfAll(int64_t group) const {
    if (group == 0) return true;
    const auto found = workload_.groups.find(group);
    return found != workload_.groups.end() && found->second.size() == workload_.ranks.size();
  }

  // Who takes part in a collective: a group, or those that differ from `base` along some dimensions
  // only.
  struct Circle {
    int64_t group = 0;
    uint32_t dims = 0;
    int64_t base = 0;

    friend auto operator<=>(const Circle&, const Circle&) = default;
  };
  Circle CircleOf(const NodeOfRank& at) const {
    const SimNode& node = NodeOf(at);
    const int64_t stated = SelfOf(at.rank).GroupOf(node);
    if (!IsOfAll(stated)) return {.group = stated};
    const SystemModel& system = machine_.system;
    const auto found = system.algorithms.find(node.collective);
    const bool is_custom = system.programs.contains(node.collective);
    if (is_custom || found == system.algorithms.end()) return {};
    Circle circle{.base = at.rank};
    for (size_t i = 0; i < machine_.dims.size(); ++i) {
      const bool takes_part = i < found->second.size() && ((node.dims >> i) & 1) != 0;
      if (!takes_part) continue;
      circle.dims |= uint32_t{1} << i;
      circle.base -= travel_.Coordinate(at.rank, i) * travel_.Stride(i);
      if (i == 0 && found->second[0].whole) return {};
    }
    return circle.base == 0 && DimsLeftOut(circle.dims) == 1 ? Circle{} : circle;
  }
  // How many ranks differ in the dimensions that are not among `dims`.
  int64_t DimsLeftOut(uint32_t dims) const {
    int64_t ranks = 1;
    for (size_t i = 0; i < machine_.dims.size(); ++i) {
      if (((dims >> i) & 1) == 0) ranks *= machine_.dims[i].npus;
    }
    return ranks;
  }

  // Collectives of a group are matched in the order in which ranks begin them.
  NodeOfRank LastToBegin(const NodeOfRank& at) {
    const Circle circle = CircleOf(at);
    const std::vector<uint32_t>& own = CollectivesOf(at.rank, circle.group);
    const std::vector<int64_t>& begins = result_.OfRank(at.rank).begins;
    const auto order = [&](uint32_t node) { return std::pair(begins[node], node); };
    const auto place =
        static_cast<size_t>(std::ranges::lower_bound(own, order(at.node), {}, order) - own.begin());
    NodeOfRank last = at;
    int64_t last_begin = BeginOf(at);
    for (const Member& member : DistinctMembers(circle)) {
      if (place >= member.collectives->size()) continue;
      const uint32_t node = (*member.collectives)[place];
      const int64_t begin = (*member.begins)[node];
      if (begin <= last_begin || begin > EndOf(at)) continue;
      last = {member.rank, node};
      last_begin = begin;
    }
    return last;
  }

  // One who takes part.
  struct Member {
    int64_t rank = 0;
    const std::vector<uint32_t>* collectives = nullptr;  // of the circle's group, in order
    const std::vector<int64_t>* begins = nullptr;        // by node
  };

  // The numbers that nodes have for the group; 0 for the job.
  std::vector<uint32_t> NumbersOf(int64_t rank, int64_t group) const {
    std::vector<uint32_t> numbers;
    if (group == 0) numbers.push_back(0);
    const std::vector<int64_t>& groups = SelfOf(rank).groups;
    for (size_t i = 0; i < groups.size(); ++i) {
      if (group == 0 ? IsOfAll(groups[i]) : groups[i] == group) {
        numbers.push_back(static_cast<uint32_t>(i + 1));
      }
    }
    return numbers;
  }

  const std::vector<uint32_t>& CollectivesOf(int64_t rank, int64_t group) {
    std::vector<uint32_t> numbers = NumbersOf(rank, group);
    auto key = std::pair(ClassOf(rank), std::move(numbers));
    const auto known = collectives_.find(key);
    if (known != collectives_.end()) return known->second;
    std::vector<uint32_t> nodes;
    const SimProgram& program = ProgramOf(rank);
    const SimRankResult& times = result_.OfRank(rank);
    for (uint32_t i = 0; i < program.nodes.size(); ++i) {
      const SimNode& node = program.nodes[i];
      if (node.kind == NodeKind::kCollective && !machine_.system.Replays(node) &&
          times.begins[i] >= 0 && std::ranges::binary_search(key.second, node.group)) {
        nodes.push_back(i);
      }
    }
    std::ranges::stable_sort(nodes, {}, [&](uint32_t node) { return times.begins[node]; });
    return collectives_.emplace(std::move(key), std::move(nodes)).first->second;
  }

  // One rank of each class that takes part in the same way.
  const std::vector<Member>& DistinctMembers(const Circle& circle) {
    const int64_t group = circle.group;
    const auto known = members_.find(circle);
    if (known != members_.end()) return known->second;
    std::vector<Member> distinct;
    std::set<std::pair<uint32_t, std::vector<uint32_t>>> seen;
    const auto add = [&](int64_t rank) {
      if (!seen.emplace(ClassOf(rank), NumbersOf(rank, group)).second) return;
      distinct.push_back({.rank = rank,
                          .collectives = &CollectivesOf(rank, group),
                          .begins = &result_.OfRank(rank).begins});
    };
    if (group == 0) {
      const auto ranks = static_cast<int64_t>(workload_.ranks.size());
      for (int64_t rank = 0; rank < ranks; ++rank) {
        if (circle == Circle{} || IsIn(circle, rank)) add(rank);
      }
    } else if (const auto found = workload_.groups.find(group); found != workload_.groups.end()) {
      for (const int64_t rank : found->second) add(rank);
    }
    return members_.emplace(circle, std::move(distinct)).first->second;
  }
  bool IsIn(const Circle& circle, int64_t rank) const {
    int64_t base = rank;
    for (size_t i = 0; i < machine_.dims.size(); ++i) {
      if (((circle.dims >> i) & 1) != 0) base -= travel_.Coordinate(rank, i) * travel_.Stride(i);
    }
    return base == circle.base;
  }

  Key KeyOf(const NodeOfRank& at) const {
    const SimNode& node = NodeOf(at);
    return {node.kind == NodeKind::kSend, SelfOf(at.rank).PeerOf(node), TagOf(node), node.bytes};
  }
  // Messages of one size and tag between two ranks are matched in their order.
  std::optional<NodeOfRank> OtherEnd(const NodeOfRank& at) {
    const auto [sends, peer, tag, bytes] = KeyOf(at);
    if (peer < 0 || peer >= static_cast<int64_t>(workload_.ranks.size())) return std::nullopt;
    const std::vector<uint32_t>& own = MessagesOf(at.rank)[KeyOf(at)];
    const auto place = std::ranges::find(own, at.node) - own.begin();
    auto& others = MessagesOf(peer);
    const auto found = others.find(Key{!sends, at.rank, tag, bytes});
    if (found == others.end()) return std::nullopt;
    if (place >= static_cast<std::ptrdiff_t>(found->second.size())) return std::nullopt;
    return NodeOfRank{peer, found->second[static_cast<size_t>(place)]};
  }
  std::map<Key, std::vector<uint32_t>>& MessagesOf(int64_t rank) {
    const auto [known, is_new] = messages_.try_emplace(rank);
    if (!is_new) return known->second;
    const SimProgram& program = ProgramOf(rank);
    const SimRankResult& times = result_.OfRank(rank);
    for (uint32_t i = 0; i < program.nodes.size(); ++i) {
      const NodeKind kind = program.nodes[i].kind;
      if ((kind == NodeKind::kSend || kind == NodeKind::kRecv) && times.begins[i] >= 0) {
        known->second[KeyOf({rank, i})].push_back(i);
      }
    }
    for (auto& [key, nodes] : known->second) {
      std::ranges::stable_sort(nodes, {}, [&](uint32_t node) { return times.begins[node]; });
    }
    return known->second;
  }

  // ---- what the time of a node was spent with

  // Stretches are added from the last to the first.
  void AddWork(const NodeOfRank& at, int64_t begin, int64_t end,
               std::vector<SimPath::Stretch>& stretches) const {
    if (begin >= end) return;
    const SimNode& node = NodeOf(at);
    const auto add = [&](SimPart part, int64_t from, int64_t to) {
      if (from >= to) return;
      stretches.push_back({.part = part,
                           .rank = at.rank,
                           .node = at.node,
                           .begin = from,
                           .end = to,
                           .cause = SimCause::kDependency});
    };
    const bool is_message = node.kind == NodeKind::kSend || node.kind == NodeKind::kRecv;
    if (!is_message || machine_.system.replay_only) {
      return add(PartOf(node), begin, end);
    }
    const bool sends = node.kind == NodeKind::kSend;
    const int64_t peer = SelfOf(at.rank).PeerOf(node);
    if (peer < 0 || peer >= travel_.total()) return add(SimPart::kTransfer, begin, end);
    const Travel::Way way = travel_.WayOf(sends ? at.rank : peer, sends ? peer : at.rank);
    int64_t latency = 0;
    int64_t transfer = 0;
    if (way.hops > 0) {
      const auto hops = static_cast<double>(way.hops);
      latency = WholeNanos(hops * machine_.dims[way.dim].latency);
      // Links of a network with congestion take in all of a message before they send it on.
      transfer = WholeNanos((machine_.congestion ? hops : 1) * static_cast<double>(node.bytes) /
                            travel_.BytesPerNano(way.dim));
    }
    const int64_t arrives = std::max(begin, end - transfer);
    const int64_t leaves = std::max(begin, arrives - latency);
    // Fractions of both make one more nanosecond.
    const int64_t queued = leaves - begin <= way.hops ? begin : leaves;
    add(SimPart::kTransfer, arrives, end);
    add(SimPart::kLatency, queued, arrives);
    add(SimPart::kQueue, begin, queued);
  }
  static SimPart PartOf(const SimNode& node) {
    switch (node.kind) {
      case NodeKind::kCollective: return SimPart::kCollective;
      case NodeKind::kSend:
      case NodeKind::kRecv: return SimPart::kTransfer;
      case NodeKind::kMemLoad:
      case NodeKind::kMemStore: return SimPart::kMemory;
      default: return node.on_host ? SimPart::kHost : SimPart::kCompute;
    }
  }

  // ---- what let a node begin

  Before BeforeOf(const NodeOfRank& at, int64_t begin) {
    if (begin == 0) return {};
    const SimRankResult& times = result_.OfRank(at.rank);
    const auto is_new = [&](uint32_t node) { return !visited_.contains({at.rank, node}); };
    int64_t ready = 0;
    std::optional<uint32_t> dependency;
    for (const uint32_t before : BeforesOf(at.rank)[at.node]) {
      ready = std::max(ready, times.ends[before]);
      if (times.ends[before] == begin && !dependency && is_new(before)) dependency = before;
    }
    if (dependency) return {.node = dependency, .cause = SimCause::kDependency, .held = 0};
    // Nodes by their ends: those that ended when this one began, and else the last one before.
    const std::vector<uint32_t>& by_end = ByEnd(at.rank);
    const auto first = std::ranges::lower_bound(by_end, begin, {},
                                                [&](uint32_t node) { return times.ends[node]; });
    const SimSlot slot = SlotOf(ProgramOf(at.rank).nodes[at.node]);
    std::optional<uint32_t> other;
    for (auto next = first; next != by_end.end() && times.ends[*next] == begin; ++next) {
      if (*next == at.node || !is_new(*next)) continue;
      if (slot != kNoSlot && SlotOf(ProgramOf(at.rank).nodes[*next]) == slot) {
        return {.node = *next, .cause = SimCause::kSlot, .held = begin - ready};
      }
      if (!other) other = *next;
    }
    if (other) return {.node = other, .cause = SimCause::kFreed, .held = begin - ready};
    for (auto last = first; last != by_end.begin();) {
      if (is_new(*--last)) return {.node = *last, .cause = SimCause::kFreed, .held = 0};
    }
    return {};
  }
  const Csr<uint32_t>& BeforesOf(int64_t rank) {
    const SimProgram& program = ProgramOf(rank);
    const auto [known, is_new] = befores_.try_emplace(&program);
    if (!is_new) return known->second;
    std::vector<std::pair<uint32_t, uint32_t>> edges;
    for (uint32_t i = 0; i < program.nodes.size(); ++i) {
      for (const uint32_t child : program.children[i]) edges.emplace_back(child, i);
    }
    known->second = Csr<uint32_t>::Build(
        program.nodes.size(), edges, [](const auto& edge) { return edge.first; },
        [](const auto& edge) { return edge.second; });
    return known->second;
  }
  const std::vector<uint32_t>& ByEnd(int64_t rank) {
    const auto [known, is_new] = by_end_.try_emplace(ClassOf(rank));
    if (!is_new) return known->second;
    const SimRankResult& times = result_.OfRank(rank);
    for (uint32_t i = 0; i < times.ends.size(); ++i) {
      if (times.ends[i] >= 0) known->second.push_back(i);
    }
    std::ranges::stable_sort(known->second, {}, [&](uint32_t node) { return times.ends[node]; });
    return known->second;
  }

  const SimMachine& machine_;
  const SimWorkload& workload_;
  const SimResult& result_;
  const Travel travel_;
  std::set<NodeOfRank> visited_;
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, std::vector<uint32_t>> collectives_;
  std::map<Circle, std::vector<Member>> members_;
  std::map<int64_t, std::map<Key, std::vector<uint32_t>>> messages_;
  std::map<const SimProgram*, Csr<uint32_t>> befores_;
  std::map<uint32_t, std::vector<uint32_t>> by_end_;
};

}  // namespace

std::string_view Name(SimPart part) {
  switch (part) {
    case SimPart::kHost: return "host";
    case SimPart::kCompute: return "compute";
    case SimPart::kCollective: return "collective";
    case SimPart::kLatency: return "latency";
    case SimPart::kTransfer: return "transfer";
    case SimPart::kQueue: return "queue";
    case SimPart::kMemory: return "memory";
    case SimPart::kWait: return "wait";
  }
  return "wait";
}

std::string_view Name(SimCause cause) {
  switch (cause) {
    case SimCause::kStart: return "start";
    case SimCause::kDependency: return "dependency";
    case SimCause::kSlot: return "slot";
    case SimCause::kFreed: return "freed";
  }
  return "start";
}

SimPath FindSimPath(const SimMachine& machine, const SimWorkload& workload,
                    const SimResult& result) {
  return PathFinder(machine, workload, result).Find();
}

}  // namespace etude
