#include "src/sim/result/sim_path.h"
#include "src/sim/network/network_graph.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "src/base/container/csr.h"
#include "src/sim/machine/travel.h"

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
      AddWork({.source = source, .collective = CollectiveEndOf(at)}, begin, until, stretches);
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
  // The node that let another begin; nullopt: unknown.
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
    for (size_t i = 0; i < result_.ranks.size(); ++i) {
      const std::vector<int64_t>& ends = result_.ranks[i].ends;
      const auto most = std::ranges::max_element(ends);
      if (most == ends.end() || *most < 0) continue;
      const NodeOfRank node{result_.first[i], static_cast<uint32_t>(most - ends.begin())};
      if (!last || *most > EndOf(*last)) last = node;
    }
    return last;
  }

  // ---- source of a node's end

  // Returns the node whose begin determined when this one ended: the node itself, the collective on
  // a rank whose messages it waited for, or the other end of the message.
  NodeOfRank WorksFor(const NodeOfRank& at) {
    if (machine_.system.replay_only) return at;
    const SimNode& node = NodeOf(at);
    if (const SimCollectiveEnd* end = CollectiveEndOf(at)) return SourceOf(at, *end);
    const bool sends = node.kind == NodeKind::kSend;
    if (!sends && node.kind != NodeKind::kRecv) return at;
    if (sends && !machine_.system.rendezvous) return at;
    const std::optional<NodeOfRank> other = OtherEnd(at);
    if (!other || BeginOf(*other) < 0 || EndOf(*other) < 0) return at;
    // A receive posted after the message's arrival took no time.
    if (!sends && !machine_.system.rendezvous) {
      return EndOf(*other) > BeginOf(at) && EndOf(*other) <= EndOf(at) ? *other : at;
    }
    return BeginOf(*other) > BeginOf(at) ? *other : at;
  }

  // Returns nullptr if the node is not a collective, or takes its recorded duration.
  const SimCollectiveEnd* CollectiveEndOf(const NodeOfRank& at) const {
    const std::vector<SimCollectiveEnd>& all = result_.OfRank(at.rank).collectives;
    const auto found = std::ranges::lower_bound(all, at.node, {}, &SimCollectiveEnd::node);
    return found != all.end() && found->node == at.node ? &*found : nullptr;
  }
  // The path stays on the rank if its node began as late as the source.
  NodeOfRank SourceOf(const NodeOfRank& at, const SimCollectiveEnd& end) {
    if (result_.ranks[end.source_class].begins[end.source_node] == BeginOf(at)) return at;
    return {RankOfClass(end.source_class, at), end.source_node};
  }
  // Returns the first rank of a class that takes part in the collective.
  int64_t RankOfClass(uint32_t rank_class, const NodeOfRank& at) {
    if (ClassOf(at.rank) == rank_class) return at.rank;
    const int64_t first = result_.first[rank_class];
    if (result_.first.size() == result_.class_of.size()) return first;
    const SimNode& node = NodeOf(at);
    const auto group = workload_.groups.find(SelfOf(at.rank).GroupOf(node));
    if (group != workload_.groups.end()) {
      const auto is_it = [&](int64_t rank) { return ClassOf(rank) == rank_class; };
      const auto found = std::ranges::find_if(group->second, is_it);
      return found == group->second.end() ? first : *found;
    }
    const uint32_t dims = machine_.DimsOf(node);
    const auto [known, is_new] = meets_.try_emplace({rank_class, dims, BaseOf(at.rank, dims)});
    if (!is_new) return known->second;
    known->second = first;
    for (int64_t rank = first; rank < static_cast<int64_t>(result_.class_of.size()); ++rank) {
      if (ClassOf(rank) != rank_class || BaseOf(rank, dims) != BaseOf(at.rank, dims)) continue;
      known->second = rank;
      break;
    }
    return known->second;
  }
  // Returns the rank with coordinate 0 along the dimensions.
  int64_t BaseOf(int64_t rank, uint32_t dims) const {
    int64_t base = rank;
    for (size_t i = 0; i < std::min<size_t>(machine_.dims.size(), 32); ++i) {
      if ((dims >> i & 1) != 0) base -= travel_.Coordinate(rank, i) * travel_.Stride(i);
    }
    return base;
  }

  Key KeyOf(const NodeOfRank& at) const {
    const SimNode& node = NodeOf(at);
    return {node.kind == NodeKind::kSend, SelfOf(at.rank).PeerOf(node), TagOf(node), node.bytes};
  }
  // Finds the other end. Messages of one size and tag between two ranks are matched in order.
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

  // ---- components of a node's time

  // Basis of a stretch: the node whose begin counts and, for a collective, its end.
  struct Work {
    NodeOfRank source;
    const SimCollectiveEnd* collective = nullptr;
  };
  // Adds stretches from the last to the first.
  void AddWork(const Work& at, int64_t begin, int64_t end,
               std::vector<SimPath::Stretch>& stretches) const {
    if (begin >= end) return;
    const SimNode& node = NodeOf(at.source);
    int64_t until = end;
    const auto add = [&](SimPart part, int64_t length) {
      if (length <= 0) return;
      stretches.push_back({.part = part,
                           .rank = at.source.rank,
                           .node = at.source.node,
                           .begin = until - length,
                           .end = until,
                           .cause = SimCause::kDependency});
      until -= length;
    };
    if (at.collective != nullptr) {
      add(SimPart::kCollectiveHandling, at.collective->handling);
      add(SimPart::kCollectiveTransfer, at.collective->transfer);
      add(SimPart::kCollectiveLatency, at.collective->latency);
      return add(SimPart::kCollectiveQueue, until - begin);
    }
    const bool sends = node.kind == NodeKind::kSend;
    const bool is_message = sends || node.kind == NodeKind::kRecv;
    if (!is_message || machine_.system.replay_only) return add(PartOf(node), until - begin);
    if (machine_.has_recorded_times()) return add(SimPart::kTransfer, until - begin);
    const int64_t rank = at.source.rank;
    const int64_t peer = SelfOf(rank).PeerOf(node);
    if (peer < 0 || peer >= travel_.total()) return add(SimPart::kTransfer, until - begin);
    const Travel::Parts parts = MessageParts(sends ? rank : peer, sends ? peer : rank, node.bytes);
    add(SimPart::kTransfer, std::min(until - begin, parts.transfer));
    add(SimPart::kLatency, std::min(until - begin, parts.latency));
    add(SimPart::kQueue, until - begin);
  }
  // Returns the times of a message without others.
  Travel::Parts MessageParts(int64_t from, int64_t to, int64_t bytes) const {
    if (machine_.times != nullptr) {
      const auto time = machine_.times->TimeOfMessage(from, to, bytes);
      return {.transfer = time ? time->nanos : 0};
    }
    if (machine_.graph == nullptr) return travel_.PartsOf(travel_.WayOf(from, to), bytes);
    if (from == to) return {};
    std::vector<uint32_t> links;
    NetworkRoutes(*machine_.graph).Find(from, to, nullptr, links);
    const PathCost cost = CostOfPath(*machine_.graph, links);
    return {.latency = WholeNanos(cost.latency),
            .transfer = WholeNanos(static_cast<double>(bytes) / cost.rate)};
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

  // ---- nodes that let a node begin

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
    // By end: nodes that ended when this one began, otherwise the last one before.
    const std::vector<uint32_t>& by_end = ByEnd(at.rank);
    const auto first = std::ranges::lower_bound(by_end, begin, {},
                                                [&](uint32_t node) { return times.ends[node]; });
    const std::vector<size_t>& slots = GroupSlots(at.rank);
    const size_t slot = SlotOf(ProgramOf(at.rank).nodes[at.node], slots);
    std::optional<uint32_t> other;
    for (auto next = first; next != by_end.end() && times.ends[*next] == begin; ++next) {
      if (*next == at.node || !is_new(*next)) continue;
      if (slot != kNoSlot && SlotOf(ProgramOf(at.rank).nodes[*next], slots) == slot) {
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
  const std::vector<size_t>& GroupSlots(int64_t rank) {
    const auto [known, is_new] = group_slots_.try_emplace(ClassOf(rank));
    if (is_new && machine_.runs_groups_at_once()) {
      known->second = GroupSlotsOf(SelfOf(rank), workload_.groups, travel_.total());
    }
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
  std::map<std::tuple<uint32_t, uint32_t, int64_t>, int64_t> meets_;  // by class, dimensions, base
  std::map<int64_t, std::map<Key, std::vector<uint32_t>>> messages_;
  std::map<const SimProgram*, Csr<uint32_t>> befores_;
  std::map<uint32_t, std::vector<uint32_t>> by_end_;
  std::map<uint32_t, std::vector<size_t>> group_slots_;  // by class
};

}  // namespace

std::string_view Name(SimPart part) {
  switch (part) {
    case SimPart::kHost: return "host";
    case SimPart::kCompute: return "compute";
    case SimPart::kCollective: return "collective";
    case SimPart::kCollectiveLatency: return "collective_latency";
    case SimPart::kCollectiveTransfer: return "collective_transfer";
    case SimPart::kCollectiveHandling: return "collective_handling";
    case SimPart::kCollectiveQueue: return "collective_queue";
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
