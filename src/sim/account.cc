#include "src/sim/account.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "src/base/intervals.h"
#include "src/sim/travel.h"

namespace etude {
namespace {

constexpr int64_t kNever = INT64_MAX;

// Of those of a program's nodes that communicate with the same others: which group it is of, by its
// number among those of a rank, and along which dimensions.
struct Circle {
  uint32_t group = 0;
  uint32_t dims = 0;

  friend auto operator<=>(const Circle&, const Circle&) = default;
};

// When those that a node communicates with have come to it: by class of ranks and node.
class Arrivals {
 public:
  Arrivals(const SimMachine& machine, const SimWorkload& workload, const SimResult& result)
      : machine_(machine), workload_(workload), result_(result), travel_(machine) {
    first_.resize(result.ranks.size(), -1);
    for (size_t rank = result.class_of.size(); rank-- > 0;) {
      first_[result.class_of[rank]] = static_cast<int64_t>(rank);
    }
    for (size_t i = 0; i < first_.size(); ++i) {
      come_.push_back(result.ranks[i].begins);
      order_.push_back(IssueOrder(i));
    }
    if (machine.system.replay_only) return;
    FindCollectives();
    FindMessages();
  }

  int64_t first(size_t rank_class) const { return first_[rank_class]; }
  // kNever: some have not come.
  int64_t Of(size_t rank_class, uint32_t node) const { return come_[rank_class][node]; }
  std::vector<SimCollectiveAccount> TakeCollectives() { return std::move(collectives_); }

 private:
  // Nodes of one type and one circle, in the order in which they were begun.
  using Calls = std::map<std::pair<Circle, CollectiveType>, std::vector<uint32_t>>;

  const SimRank& RankAt(int64_t rank) const { return workload_.ranks[static_cast<size_t>(rank)]; }
  const SimProgram& ProgramOf(size_t rank_class) const {
    return *RankAt(first_[rank_class]).program;
  }

  // Nodes that were begun, in that order.
  std::vector<uint32_t> IssueOrder(size_t rank_class) const {
    const SimRankResult& done = result_.ranks[rank_class];
    std::vector<uint32_t> order;
    for (uint32_t node = 0; node < done.begins.size(); ++node) {
      if (done.begins[node] >= 0) order.push_back(node);
    }
    std::ranges::stable_sort(order, {}, [&](uint32_t node) {
      const int64_t end = done.ends[node];
      return std::pair(done.begins[node], end < 0 ? kNever : end);
    });
    return order;
  }

  // The dimensions that a collective of all ranks is along.
  uint32_t DimsOf(const SimNode& node) const {
    const auto found = machine_.system.algorithms.find(node.collective);
    const uint32_t all = FirstDims(Dims());
    if (machine_.system.programs.contains(node.collective)) return all;
    if (found == machine_.system.algorithms.end() || found->second.empty()) return all;
    if (found->second.front().whole) return all;
    return node.dims & FirstDims(std::min(Dims(), found->second.size()));
  }
  // Those that a node can name.
  size_t Dims() const { return std::min<size_t>(machine_.dims.size(), 32); }
  static uint32_t FirstDims(size_t count) {
    return static_cast<uint32_t>((uint64_t{1} << count) - 1);
  }
  Circle CircleOf(const SimRank& rank, const SimNode& node) const {
    const auto group = workload_.groups.find(rank.GroupOf(node));
    const bool is_part = node.group != 0 && group != workload_.groups.end() &&
                         static_cast<int64_t>(group->second.size()) != travel_.total();
    if (is_part) return {.group = node.group};
    return {.dims = DimsOf(node)};
  }
  // What those who are in one have in common: the group, or the rank that is 0 along the
  // dimensions.
  using Place = std::pair<int64_t, int64_t>;
  Place PlaceOf(int64_t rank, const Circle& circle) const {
    if (circle.group != 0) return {0, RankAt(rank).groups[circle.group - 1]};
    int64_t base = rank;
    for (size_t i = 0; i < Dims(); ++i) {
      if ((circle.dims >> i & 1) != 0) base -= travel_.Coordinate(rank, i) * travel_.Stride(i);
    }
    return {int64_t{circle.dims} + 1, base};
  }
  int64_t MembersOf(const Place& place) const {
    const auto& [dims, number] = place;
    if (dims == 0) return static_cast<int64_t>(workload_.groups.at(number).size());
    int64_t members = 1;
    for (size_t i = 0; i < Dims(); ++i) {
      if (((dims - 1) >> i & 1) != 0) members *= machine_.dims[i].npus;
    }
    return members;
  }

  void FindCollectives() {
    std::vector<Calls> calls(first_.size());
    std::vector<std::vector<Circle>> circles(first_.size());
    for (size_t i = 0; i < first_.size(); ++i) {
      const SimProgram& program = ProgramOf(i);
      for (const uint32_t index : order_[i]) {
        const SimNode& node = program.nodes[index];
        if (node.kind != NodeKind::kCollective) continue;
        if (node.collective == CollectiveType::kBroadcast) continue;  // replayed
        const Circle circle = CircleOf(RankAt(first_[i]), node);
        calls[i][{circle, node.collective}].push_back(index);
        circles[i].push_back(circle);
      }
      std::ranges::sort(circles[i]);
      circles[i].erase(std::ranges::unique(circles[i]).begin(), circles[i].end());
    }
    // Groups with the same classes of ranks in the same roles are alike.
    using Roles = std::vector<std::pair<uint32_t, Circle>>;
    std::map<Place, Roles> places;
    for (size_t rank = 0; rank < result_.class_of.size(); ++rank) {
      const uint32_t rank_class = result_.class_of[rank];
      for (const Circle& circle : circles[rank_class]) {
        Roles& roles = places[PlaceOf(static_cast<int64_t>(rank), circle)];
        const std::pair role(rank_class, circle);
        if (std::ranges::find(roles, role) == roles.end()) roles.push_back(role);
      }
    }
    struct Kind {
      uint64_t count = 0;
      Place place;
    };
    std::map<Roles, Kind> kinds;
    for (auto& [place, roles] : places) {
      std::ranges::sort(roles);
      Kind& kind = kinds[roles];
      kind.place = place;
      ++kind.count;
    }
    for (const auto& [roles, kind] : kinds) {
      std::vector<CollectiveType> types;
      for (const auto& [rank_class, circle] : roles) {
        for (const auto& [key, nodes] : calls[rank_class]) {
          if (key.first == circle) types.push_back(key.second);
        }
      }
      std::ranges::sort(types);
      types.erase(std::ranges::unique(types).begin(), types.end());
      for (const CollectiveType type : types) Meet(roles, type, calls, kind.count, kind.place);
    }
    for (const auto& [key, account] : accounts_) collectives_.push_back(account);
    std::ranges::stable_sort(collectives_, std::ranges::greater(), &SimCollectiveAccount::time);
  }

  // The collectives of one type of one group: the first of each, the second of each …
  void Meet(const std::vector<std::pair<uint32_t, Circle>>& roles, CollectiveType type,
            const std::vector<Calls>& calls, uint64_t count, const Place& place) {
    struct Part {
      uint32_t rank_class = 0;
      const std::vector<uint32_t>* nodes = nullptr;
    };
    std::vector<Part> parts;
    size_t most = 0;
    static const std::vector<uint32_t> kNone;
    for (const auto& [rank_class, circle] : roles) {
      const auto found = calls[rank_class].find({circle, type});
      const bool is_there = found != calls[rank_class].end();
      parts.push_back({.rank_class = rank_class, .nodes = is_there ? &found->second : &kNone});
      most = std::max(most, parts.back().nodes->size());
    }
    for (size_t k = 0; k < most; ++k) {
      int64_t first_begin = kNever;
      int64_t last_begin = 0;
      int64_t last_end = 0;
      bool finished = true;
      const SimNode* node = nullptr;
      for (const Part& part : parts) {
        if (k >= part.nodes->size()) {
          last_begin = kNever;
          finished = false;
          continue;
        }
        const uint32_t index = (*part.nodes)[k];
        const SimRankResult& done = result_.ranks[part.rank_class];
        if (node == nullptr) node = &ProgramOf(part.rank_class).nodes[index];
        first_begin = std::min(first_begin, done.begins[index]);
        last_begin = std::max(last_begin, done.begins[index]);
        last_end = std::max(last_end, done.ends[index]);
        finished = finished && done.ends[index] >= 0;
      }
      for (const Part& part : parts) {
        if (k < part.nodes->size()) come_[part.rank_class][(*part.nodes)[k]] = last_begin;
      }
      const int64_t dims = place.first;
      SimCollectiveAccount& account = accounts_[{type, dims, MembersOf(place), node->bytes}];
      account.type = type;
      account.bytes = node->bytes;
      account.members = MembersOf(place);
      account.in_group = dims == 0;
      account.dims = dims == 0 ? 0 : static_cast<uint32_t>(dims - 1);
      account.count += count;
      if (!finished) {
        account.unfinished += count;
        continue;
      }
      account.time += (last_end - first_begin) * static_cast<int64_t>(count);
      account.skew += (last_begin - first_begin) * static_cast<int64_t>(count);
    }
  }

  void FindMessages() {
    for (size_t i = 0; i < first_.size(); ++i) {
      Pair(i, NodeKind::kRecv, NodeKind::kSend);
      // A rendezvous is what keeps a sender waiting.
      if (machine_.system.rendezvous) Pair(i, NodeKind::kSend, NodeKind::kRecv);
    }
  }

  struct MessageKey {
    int64_t tag = 0;
    int64_t bytes = 0;

    friend auto operator<=>(const MessageKey&, const MessageKey&) = default;
  };
  // Messages of a rank with `peer`, in the order in which they were begun.
  using Messages = std::map<MessageKey, std::vector<uint32_t>>;
  // Of a class by the numbers of its peers.
  using Ends = std::map<uint32_t, std::vector<uint32_t>>;
  const Ends& EndsOf(size_t rank_class, NodeKind kind) {
    const auto [found, is_new] = ends_.try_emplace({rank_class, kind});
    Ends& by_peer = found->second;
    if (!is_new) return by_peer;
    const SimProgram& program = ProgramOf(rank_class);
    for (const uint32_t node : order_[rank_class]) {
      if (program.nodes[node].kind == kind) by_peer[program.nodes[node].peer].push_back(node);
    }
    return by_peer;
  }
  Messages MessagesWith(int64_t rank, int64_t peer, NodeKind kind) {
    const size_t rank_class = result_.class_of[static_cast<size_t>(rank)];
    const SimRank& self = RankAt(rank);
    const SimProgram& program = ProgramOf(rank_class);
    std::vector<uint32_t> nodes;
    for (const auto& [number, ends] : EndsOf(rank_class, kind)) {
      if (number != SimNode::kNobody && self.peers[number] == peer) {
        nodes.insert(nodes.end(), ends.begin(), ends.end());
      }
    }
    std::ranges::stable_sort(nodes, {}, [&](uint32_t node) {
      return std::pair(result_.ranks[rank_class].begins[node], node);
    });
    Messages messages;
    for (const uint32_t node : nodes) {
      const SimNode& one = program.nodes[node];
      messages[{.tag = one.tag, .bytes = one.bytes}].push_back(node);
    }
    return messages;
  }
  // When the other ends of a class's messages have come.
  void Pair(size_t rank_class, NodeKind kind, NodeKind other) {
    const int64_t rank = first_[rank_class];
    std::vector<int64_t> peers;
    for (const auto& [number, nodes] : EndsOf(rank_class, kind)) {
      const int64_t peer = number == SimNode::kNobody ? -1 : RankAt(rank).peers[number];
      if (peer >= 0 && peer < travel_.total()) peers.push_back(peer);
    }
    std::ranges::sort(peers);
    peers.erase(std::ranges::unique(peers).begin(), peers.end());
    for (const int64_t peer : peers) {
      const Messages mine = MessagesWith(rank, peer, kind);
      const Messages others = MessagesWith(peer, rank, other);
      for (const auto& [key, nodes] : mine) {
        const auto found = others.find(key);
        for (size_t k = 0; k < nodes.size(); ++k) {
          int64_t& come = come_[rank_class][nodes[k]];
          const bool is_there = found != others.end() && k < found->second.size();
          come = is_there ? std::max(come, result_.OfRank(peer).begins[found->second[k]]) : kNever;
        }
      }
    }
  }

  const SimMachine& machine_;
  const SimWorkload& workload_;
  const SimResult& result_;
  const Travel travel_;
  std::vector<int64_t> first_;  // rank, by class
  std::vector<std::vector<uint32_t>> order_;
  std::vector<std::vector<int64_t>> come_;
  std::map<std::tuple<CollectiveType, int64_t, int64_t, int64_t>, SimCollectiveAccount> accounts_;
  std::vector<SimCollectiveAccount> collectives_;
  std::map<std::pair<size_t, NodeKind>, Ends> ends_;
};

// Kinds of instants of a rank.
struct Instants {
  std::vector<Interval> compute;
  std::vector<Interval> communication;
  std::vector<Interval> memory;
  std::vector<Interval> host;
  std::vector<Interval> waiting;
};

Instants InstantsOf(const SimProgram& program, const SimRankResult& done, const Arrivals& arrivals,
                    size_t rank_class, int64_t step) {
  Instants instants;
  for (uint32_t i = 0; i < program.nodes.size(); ++i) {
    const int64_t begin = done.begins[i];
    if (begin < 0) continue;
    const bool ended = done.ends[i] >= 0;
    const int64_t end = ended ? done.ends[i] : step;
    const auto add = [](std::vector<Interval>& to, int64_t from, int64_t until) {
      to.push_back({Nanos{from}, Nanos{until}});
    };
    const SimNode& node = program.nodes[i];
    switch (node.kind) {
      case NodeKind::kMetadata:
      case NodeKind::kUnknown: break;
      case NodeKind::kMemLoad:
      case NodeKind::kMemStore: add(instants.memory, begin, end); break;
      case NodeKind::kCollective:
      case NodeKind::kSend:
      case NodeKind::kRecv: {
        const int64_t come = ended ? std::min(end, arrivals.Of(rank_class, i)) : end;
        add(instants.waiting, begin, come);
        add(instants.communication, come, end);
        break;
      }
      default: add(node.on_host ? instants.host : instants.compute, begin, end);
    }
  }
  return instants;
}

SimTimes TimesOf(Instants instants, bool finished, int64_t end, int64_t step) {
  const TimeSet compute(std::move(instants.compute));
  const TimeSet communication(std::move(instants.communication));
  const TimeSet memory(std::move(instants.memory));
  const TimeSet host(std::move(instants.host));
  const TimeSet waiting(std::move(instants.waiting));
  SimTimes times{.compute = compute.length().count,
                 .communication = communication.length().count,
                 .memory = memory.length().count,
                 .host = host.length().count};
  TimeSet busy = compute;
  const auto beyond = [&](const TimeSet& more) {
    const int64_t before = busy.length().count;
    busy = busy.Or(more);
    return busy.length().count - before;
  };
  times.exposed_communication = beyond(communication);
  times.exposed_memory = beyond(memory);
  times.host_wait = beyond(host);
  times.late_wait = beyond(waiting);
  times.early = finished ? step - end : 0;
  times.other_wait = step - busy.length().count - times.early;
  return times;
}

}  // namespace

SimAccount AccountOf(const SimMachine& machine, const SimWorkload& workload,
                     const SimResult& result) {
  SimAccount account;
  for (const SimRankResult& rank : result.ranks) {
    for (const std::vector<int64_t>* times : {&rank.begins, &rank.ends}) {
      if (!times->empty()) account.step = std::max(account.step, std::ranges::max(*times));
    }
  }
  Arrivals arrivals(machine, workload, result);
  std::vector<int64_t> counts(result.ranks.size());
  for (const uint32_t rank_class : result.class_of) ++counts[rank_class];
  for (size_t i = 0; i < result.ranks.size(); ++i) {
    const SimRankResult& done = result.ranks[i];
    const int64_t first = arrivals.first(i);
    const SimProgram& program = *workload.ranks[static_cast<size_t>(first)].program;
    account.classes.push_back(
        {.first = first,
         .ranks = counts[i],
         .finished = done.finished,
         .end = done.wall,
         .times = TimesOf(InstantsOf(program, done, arrivals, i, account.step), done.finished,
                          done.wall, account.step)});
  }
  account.collectives = arrivals.TakeCollectives();
  return account;
}

double AlgorithmBytes(CollectiveType type, int64_t bytes, int64_t members) {
  const auto size = static_cast<double>(bytes);
  return type == CollectiveType::kAllGather ? size * static_cast<double>(members) : size;
}

double BusFactor(CollectiveType type, int64_t members) {
  const double share = 1 - 1 / static_cast<double>(std::max<int64_t>(members, 1));
  switch (type) {
    case CollectiveType::kAllReduce: return 2 * share;
    case CollectiveType::kAllGather:
    case CollectiveType::kReduceScatter:
    case CollectiveType::kAllToAll: return share;
    default: return 1;
  }
}

}  // namespace etude
