#include "src/sim/result/arrivals.h"

#include <algorithm>
#include <functional>

namespace etude {
namespace {

// Begin times of the members of a collective with a root.
class RootedBegins {
 public:
  void Add(int64_t begin, bool is_root) {
    if (is_root) {
      root_ = begin;
    } else {
      first_other_ = std::min(first_other_.value_or(begin), begin);
      last_other_ = std::max(last_other_.value_or(begin), begin);
    }
  }

  static bool HasRoot(CollectiveType type) {
    return IsFromRoot(type) || type == CollectiveType::kGather || type == CollectiveType::kReduce;
  }

  // Returns the time from which counted data can move: the root's begin for data from the root; for
  // data to the root, which need not be present, the first begin of the others; for reduces the
  // last, because the sum needs all data. nullopt: unknown, or another type.
  std::optional<int64_t> DataMoves(CollectiveType type) const {
    if (IsFromRoot(type)) return root_;
    if (type == CollectiveType::kGather) return first_other_;
    if (type == CollectiveType::kReduce) return last_other_;
    return std::nullopt;
  }

 private:
  std::optional<int64_t> root_;
  std::optional<int64_t> first_other_;
  std::optional<int64_t> last_other_;
};

}  // namespace

Arrivals::Arrivals(const SimMachine& machine, const SimWorkload& workload, const SimResult& result)
    : machine_(machine), workload_(workload), result_(result), travel_(machine) {
  for (size_t i = 0; i < result.ranks.size(); ++i) {
    come_.push_back(result.ranks[i].begins);
    order_.push_back(IssueOrder(i));
  }
  if (machine.system.replay_only) return;
  FindCollectives();
  FindMessages();
  order_.clear();
  ends_.clear();
}

std::optional<int64_t> Arrivals::AbsentFrom(size_t rank_class, uint32_t node) const {
  const auto found = absent_.find({rank_class, node});
  return found == absent_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Arrivals::Other> Arrivals::OtherSizeAt(size_t rank_class, uint32_t node) const {
  const auto found = other_size_.find({rank_class, node});
  return found == other_size_.end() ? std::nullopt : std::optional(found->second);
}

size_t Arrivals::Dims() const { return std::min<size_t>(machine_.dims.size(), 32); }

// A group of all ranks counts as all ranks.
Arrivals::Circle Arrivals::CircleOf(const SimRank& rank, const SimNode& node) const {
  const auto group = workload_.groups.find(rank.GroupOf(node));
  const bool is_part = node.group != 0 && group != workload_.groups.end() &&
                       static_cast<int64_t>(group->second.size()) != travel_.total();
  if (is_part) return {.group = node.group};
  return {.dims = machine_.DimsOf(node)};
}

Arrivals::Place Arrivals::PlaceOf(int64_t rank, const Circle& circle) const {
  if (circle.group != 0) return {0, RankAt(rank).groups[circle.group - 1]};
  int64_t base = rank;
  for (size_t i = 0; i < Dims(); ++i) {
    if ((circle.dims >> i & 1) != 0) base -= travel_.Coordinate(rank, i) * travel_.Stride(i);
  }
  return {int64_t{circle.dims} + 1, base};
}

int64_t Arrivals::MembersOf(const Place& place) const {
  const auto& [dims, number] = place;
  if (dims == 0) return static_cast<int64_t>(workload_.groups.at(number).size());
  int64_t members = 1;
  for (size_t i = 0; i < Dims(); ++i) {
    if (((dims - 1) >> i & 1) != 0) members *= machine_.dims[i].npus;
  }
  return members;
}

uint32_t Arrivals::DimsOfGroup(CollectiveType type, int64_t ranks, int64_t bytes,
                               const GroupPlace& place) const {
  const AlgorithmChoices choices = machine_.system.FindAlgorithms(type, ranks, bytes);
  if (place.line && !IsWhole(choices)) return uint32_t{1} << *place.line;
  uint32_t dims = 0;
  for (size_t i = 0; GroupsUseDims(machine_, choices, type) && i < place.grid.size(); ++i) {
    if (place.grid[i].size() > 1) dims |= uint32_t{1} << i;
  }
  return dims;
}

bool Arrivals::IsRoot(int64_t rank, const SimNode& node) const {
  const Circle circle = CircleOf(RankAt(rank), node);
  const auto group = workload_.groups.find(RankAt(rank).GroupOf(node));
  int64_t root = node.root;
  if (group != workload_.groups.end()) root = group->second[static_cast<size_t>(node.root)];
  if (circle.group != 0) return root == rank;
  for (size_t i = 0; i < Dims(); ++i) {
    const bool is_along = (circle.dims >> i & 1) != 0;
    if (is_along && travel_.Coordinate(rank, i) != travel_.Coordinate(root, i)) return false;
  }
  return true;
}

std::vector<uint32_t> Arrivals::IssueOrder(size_t rank_class) const {
  const SimRankResult& done = result_.ranks[rank_class];
  const SimProgram& program = ProgramOf(rank_class);
  std::vector<uint32_t> order;
  for (uint32_t node = 0; node < done.begins.size(); ++node) {
    if (done.begins[node] >= 0 && IsCommunication(program.nodes[node].kind)) order.push_back(node);
  }
  std::ranges::stable_sort(order, {}, [&](uint32_t node) {
    const int64_t end = done.ends[node];
    return std::pair(done.begins[node], end < 0 ? kNever : end);
  });
  return order;
}

void Arrivals::FindCollectives() {
  std::vector<Calls> calls(result_.ranks.size());
  std::vector<std::vector<Circle>> circles(result_.ranks.size());
  for (size_t i = 0; i < result_.ranks.size(); ++i) {
    const SimProgram& program = ProgramOf(i);
    const auto add = [&](const SimNode& node) {
      return circles[i].emplace_back(CircleOf(RankAt(result_.first[i]), node));
    };
    for (const uint32_t index : order_[i]) {
      const SimNode& node = program.nodes[index];
      if (node.kind != NodeKind::kCollective) continue;
      if (machine_.system.Replays(node)) continue;
      calls[i][{add(node), node.collective}].push_back(index);
    }
    // Members that call no collective are missed, too.
    if (!result_.ranks[i].finished) {
      for (const SimNode& node : program.nodes) {
        if (node.kind == NodeKind::kCollective && !machine_.system.Replays(node)) add(node);
      }
    }
    std::ranges::sort(circles[i]);
    circles[i].erase(std::ranges::unique(circles[i]).begin(), circles[i].end());
  }
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

// Returns a member that does not call the collective.
std::optional<int64_t> Arrivals::StrangerTo(const Roles& roles, const Place& place) const {
  const auto is_member = [&](int64_t rank) {
    if (place.first > 0) {
      return PlaceOf(rank, {.dims = static_cast<uint32_t>(place.first - 1)}) == place;
    }
    return std::ranges::count(workload_.groups.at(place.second), rank) > 0;
  };
  for (size_t rank = 0; rank < result_.class_of.size(); ++rank) {
    const auto knows = [&](const auto& role) { return role.first == result_.class_of[rank]; };
    if (std::ranges::none_of(roles, knows) && is_member(static_cast<int64_t>(rank))) {
      return static_cast<int64_t>(rank);
    }
  }
  return std::nullopt;
}

// Matches the collectives of one type and group: the first of each member, the second, …
void Arrivals::Meet(const Roles& roles, CollectiveType type, const std::vector<Calls>& calls,
                    uint64_t count, const Place& place) {
  struct Part {
    uint32_t rank_class = 0;
    std::vector<uint32_t> nodes;
  };
  std::vector<Part> parts;
  size_t most = 0;
  for (const auto& [rank_class, circle] : roles) {
    Part& part = parts.emplace_back(Part{.rank_class = rank_class, .nodes = {}});
    const auto found = calls[rank_class].find({circle, type});
    if (found != calls[rank_class].end()) part.nodes = found->second;
    most = std::max(most, part.nodes.size());
  }
  GroupPlace of_group;
  if (place.first == 0 && machine_.graph != nullptr) {
    of_group = PlaceOfGroup(travel_, Dims(), workload_.groups.at(place.second));
  }
  for (size_t k = 0; k < most; ++k) {
    SimCollectiveAccount one{.type = type, .members = MembersOf(place)};
    int64_t first_begin = kNever;
    int64_t last_begin = 0;
    int64_t last_end = 0;
    RootedBegins rooted;
    bool finished = true;
    std::optional<int64_t> absent;
    for (const Part& part : parts) {
      if (k >= part.nodes.size()) {
        if (!absent) absent = result_.first[part.rank_class];
        continue;
      }
      const uint32_t index = part.nodes[k];
      const SimRankResult& done = result_.ranks[part.rank_class];
      const SimNode& node = ProgramOf(part.rank_class).nodes[index];
      one.bytes = std::max(one.bytes, node.bytes);
      if (RootedBegins::HasRoot(type)) {
        rooted.Add(done.begins[index], IsRoot(result_.first[part.rank_class], node));
      }
      first_begin = std::min(first_begin, done.begins[index]);
      last_begin = std::max(last_begin, done.begins[index]);
      last_end = std::max(last_end, done.ends[index]);
      finished = finished && done.ends[index] >= 0;
    }
    if (!finished && !absent) absent = StrangerTo(roles, place);
    finished = finished && !absent;
    for (const Part& part : parts) {
      if (k >= part.nodes.size()) continue;
      come_[part.rank_class][part.nodes[k]] = absent ? kNever : last_begin;
      if (absent) absent_[{part.rank_class, part.nodes[k]}] = *absent;
      if (finished || absent) continue;
      const auto bytes_of = [&](const Part& its) {
        return ProgramOf(its.rank_class).nodes[its.nodes[k]].bytes;
      };
      for (const Part& other : parts) {
        if (bytes_of(other) == bytes_of(part)) continue;
        other_size_[{part.rank_class, part.nodes[k]}] = {.rank = result_.first[other.rank_class],
                                                         .node = other.nodes[k]};
        break;
      }
    }
    one.in_group = place.first == 0;
    one.dims = one.in_group ? DimsOfGroup(type, one.members, one.bytes, of_group)
                            : static_cast<uint32_t>(place.first - 1);
    SimCollectiveAccount& account =
        accounts_[{type, one.in_group ? -int64_t{one.dims} : place.first, one.members, one.bytes}];
    one.count = account.count + count;
    one.unfinished = account.unfinished + (finished ? 0 : count);
    const auto times = static_cast<int64_t>(finished ? count : 0);
    one.time = account.time + (last_end - first_begin) * times;
    one.skew = account.skew + (last_begin - first_begin) * times;
    one.moving = account.moving + (last_end - rooted.DataMoves(type).value_or(last_begin)) * times;
    account = one;
  }
}

void Arrivals::FindMessages() {
  for (size_t i = 0; i < result_.ranks.size(); ++i) {
    Pair(i, NodeKind::kRecv, NodeKind::kSend);
    // With rendezvous a sender can wait.
    if (machine_.system.rendezvous) Pair(i, NodeKind::kSend, NodeKind::kRecv);
  }
}

const Arrivals::Ends& Arrivals::EndsOf(size_t rank_class, NodeKind kind) {
  const auto [found, is_new] = ends_.try_emplace({rank_class, kind});
  Ends& by_peer = found->second;
  if (!is_new) return by_peer;
  const SimProgram& program = ProgramOf(rank_class);
  for (const uint32_t node : order_[rank_class]) {
    if (program.nodes[node].kind == kind) by_peer[program.nodes[node].peer].push_back(node);
  }
  return by_peer;
}

// Returns messages of a rank with `peer`, in begin order.
Arrivals::Messages Arrivals::MessagesWith(int64_t rank, int64_t peer, NodeKind kind) {
  const size_t rank_class = result_.class_of[static_cast<size_t>(rank)];
  const SimRank& self = RankAt(rank);
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
    const SimNode& one = self.program->nodes[node];
    messages[{.tag = TagOf(one), .bytes = one.bytes}].push_back(node);
  }
  return messages;
}

// Finds when the other ends of a class's messages arrived.
void Arrivals::Pair(size_t rank_class, NodeKind kind, NodeKind other) {
  const int64_t rank = result_.first[rank_class];
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
        if (found != others.end() && k < found->second.size()) {
          come = std::max(come, result_.OfRank(peer).begins[found->second[k]]);
        } else {
          come = kNever;
          absent_[{rank_class, nodes[k]}] = peer;
        }
      }
    }
  }
}

}  // namespace etude
