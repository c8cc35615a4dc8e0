#include "src/sim/engine/rank_classes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "src/sim/collective/collective_algorithms.h"
#include "src/sim/collective/group_place.h"
#include "src/sim/engine/link_classes.h"
#include "src/sim/engine/signature.h"
#include "src/sim/machine/travel.h"

namespace etude {
namespace {

// Returns the signature of a program, ignoring who its partners are.
Signature SignatureOf(const SimProgram& program) {
  Signature all;
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const SimNode& node = program.nodes[i];
    all.Add(uint64_t{static_cast<uint8_t>(node.kind)} << 16 |
            uint64_t{static_cast<uint8_t>(node.collective)} << 8 | uint64_t{node.on_host});
    all.Add(uint64_t{node.dims});
    all.Add(uint64_t{node.group} << 32 | node.peer);
    all.Add(node.duration);
    all.Add(node.flops);
    all.Add(node.bytes);
    all.Add(node.tag);
    all.Add(node.priority);
    all.Add(node.root);
    all.Add(uint64_t{program.waits[i]});
    for (const uint32_t child : program.children[i]) all.Add(uint64_t{child});
    all.Add(UINT64_MAX);
  }
  return all;
}

// Members of a ring, tree or exchange that a rank exchanges messages with, besides its neighbours.
struct Reach {
  bool doubling = false;  // distances 1, 2, 4, …
  bool all = false;

  void Add(const AlgorithmChoice& choice) {
    switch (Info(choice.algorithm).reach) {
      case AlgorithmReach::kNeighbours:
      case AlgorithmReach::kByRoot: break;  // FindTrees
      case AlgorithmReach::kPowersOfTwo: doubling = true; break;
      case AlgorithmReach::kAll: all = true; break;
    }
  }
};

// Refines classes until the partners of all ranks of a class belong to the same classes at the same
// distances, in all joint operations. A round looks at each member of each group once, or at each
// pair in small groups in which all exchange messages.
class Refiner {
 public:
  Refiner(const SimMachine& machine, const SimWorkload& workload)
      : travel_(machine), machine_(machine), workload_(workload), ranks_(workload.ranks.size()) {
    reach_of_dim_.resize(machine.dims.size());
    for (const auto& [type, choices] : machine.system.algorithms) AddReach(choices);
    for (const AlgorithmRule& rule : machine.system.rules) AddReach(rule.choices);
  }

  std::optional<RankClasses> Run() {
    std::vector<Signature> signatures(ranks_);
    std::unordered_map<const SimProgram*, Signature> known;
    std::unordered_map<const SimProgram*, bool> of_all;
    for (size_t i = 0; i < ranks_; ++i) {
      const SimProgram* program = Of(i).program.get();
      const auto [found, is_new] = known.try_emplace(program);
      if (is_new) {
        found->second = SignatureOf(*program);
        of_all[program] = std::ranges::any_of(program->nodes, [](const SimNode& node) {
          return node.kind == NodeKind::kCollective && node.group == 0;
        });
      }
      signatures[i] = found->second;
      all_together_ = all_together_ || of_all[program];
    }
    AddFaults(signatures);
    FindTrees();
    if (!FindGroups() || !FindPeers()) return std::nullopt;
    FindLines();
    AddPlaces(signatures);
    size_t count = NumberSignatures(signatures, colors_);
    if (count < ranks_ && LinkClasses::Needs(machine_)) {
      links_.emplace(machine_);
      if (!FindPaths()) return std::nullopt;
    }
    while (count < ranks_) {
      LookAround(signatures);
      const size_t links = links_ ? links_->count() : 0;
      const bool finer_links = links_ && links_->Refine(colors_, signatures) > links;
      const size_t finer = NumberSignatures(signatures, colors_);
      if (finer == count && !finer_links) break;
      count = finer;
    }
    RankClasses classes;
    if (links_ && count < ranks_) {
      if (!links_->QueuesFit(colors_)) return std::nullopt;
      classes.class_of_link = links_->TakeClasses();
    }
    classes.class_of = colors_;
    classes.first.assign(count, -1);
    for (size_t i = ranks_; i-- > 0;) classes.first[colors_[i]] = static_cast<int64_t>(i);
    if (!NumberGroups(classes)) return std::nullopt;
    for (const int64_t rank : classes.first) {
      classes.partners.push_back(partners_[static_cast<size_t>(rank)]);
    }
    return classes;
  }

 private:
  // Members of a group, or of a line of the network.
  struct Ring {
    int64_t group = 0;            // 0: a line of all ranks; equal distances for every member
    size_t dim = 0;               // of a line of a group
    bool has_lines = false;       // only lines of the group exchange messages
    std::vector<int64_t> listed;  // empty: base, base + stride …
    int64_t base = 0;
    int64_t stride = 1;
    int64_t count = 0;
    std::vector<uint32_t> numbers;  // number of the group within each member

    int64_t RankAt(int64_t index) const {
      return listed.empty() ? base + index * stride : listed[static_cast<size_t>(index)];
    }
  };

  void AddReach(const std::vector<AlgorithmChoice>& choices) {
    for (size_t i = 0; i < std::min(choices.size(), machine_.dims.size()); ++i) {
      reach_of_dim_[i].Add(choices[i]);
      whole_ = whole_ || choices[i].whole;
    }
    // Groups use rings, unless there is only one algorithm, or on a graph (GroupChoice).
    for (const AlgorithmChoice& choice : choices) {
      if (choices.size() == 1 || machine_.graph != nullptr) reach_of_groups_.Add(choice);
    }
  }

  const SimRank& Of(size_t rank) const { return workload_.ranks[rank]; }
  bool IsRank(int64_t rank) const { return rank >= 0 && rank < static_cast<int64_t>(ranks_); }

  // Adds slow ranks, and the positions of slow links relative to each rank, so that the distance to
  // another rank determines the route.
  void AddFaults(std::vector<Signature>& signatures) const {
    for (const auto& [rank, factor] : machine_.stragglers) {
      signatures[static_cast<size_t>(rank)].Add(factor);
    }
    if (travel_.faults().empty()) return;
    const std::vector<std::vector<LinkFaults::Seen>> seen = travel_.faults().SeenByRanks();
    for (size_t i = 0; i < ranks_; ++i) {
      for (const LinkFaults::Seen& one : seen[i]) {
        signatures[i].Add(uint64_t{one.dim});
        signatures[i].Add(one.ahead);
        signatures[i].Add(one.length);
        signatures[i].Add(one.fault);
      }
    }
  }

  // Finds groups in which a program uses rooted trees, and whether any has a barrier.
  void FindTrees() {
    bool far = false;
    for (size_t i = 0; i < ranks_; ++i) {
      const auto [found, is_new] = trees_.try_emplace(Of(i).program.get());
      if (!is_new) continue;
      for (const SimNode& node : Of(i).program->nodes) {
        if (node.kind != NodeKind::kCollective || !OwnAlgorithm(node.collective)) continue;
        far = true;
        if (node.collective != CollectiveType::kBarrier) found->second.insert(node.group);
      }
    }
    if (!far) return;
    reach_of_groups_.all = true;
    for (Reach& reach : reach_of_dim_) reach.all = true;
  }
  // Adds positions in rooted trees.
  void AddPlaces(std::vector<Signature>& signatures) const {
    for (size_t i = 0; i < ranks_; ++i) {
      const std::set<uint32_t>& trees = trees_.at(Of(i).program.get());
      if (trees.contains(0)) signatures[i].Add(uint64_t{i});
    }
    for (const Ring& ring : groups_) {
      for (size_t i = 0; i < ring.listed.size(); ++i) {
        const auto rank = static_cast<size_t>(ring.listed[i]);
        if (ring.numbers[i] == kNoNumber) continue;
        if (!trees_.at(Of(rank).program.get()).contains(ring.numbers[i] + 1)) continue;
        signatures[rank].Add(uint64_t{i});
      }
    }
  }

  // Returns false if a rank uses an unknown group or one that it does not belong to; the simulation
  // reports this.
  bool FindGroups() {
    std::unordered_map<int64_t, size_t> used;
    for (size_t i = 0; i < ranks_; ++i) {
      for (size_t number = 0; number < Of(i).groups.size(); ++number) {
        const int64_t group = Of(i).groups[number];
        const auto [found, is_new] = used.emplace(group, groups_.size());
        if (is_new) {
          const auto members = workload_.groups.find(group);
          if (members == workload_.groups.end()) return false;
          groups_.push_back({.group = group,
                             .listed = members->second,
                             .count = static_cast<int64_t>(members->second.size()),
                             .numbers = std::vector<uint32_t>(members->second.size(), kNoNumber)});
          if (members->second.size() == ranks_) all_together_ = true;
          if (!std::ranges::all_of(members->second, [&](int64_t rank) { return IsRank(rank); })) {
            return false;
          }
        }
      }
    }
    for (Ring& ring : groups_) {
      for (size_t i = 0; i < ring.listed.size(); ++i) {
        const std::vector<int64_t>& all = Of(static_cast<size_t>(ring.listed[i])).groups;
        const auto number = std::ranges::find(all, ring.group);
        if (number == all.end()) continue;
        ring.numbers[i] = static_cast<uint32_t>(number - all.begin());
      }
    }
    std::vector<uint32_t> memberships(ranks_);
    for (const Ring& ring : groups_) {
      for (size_t i = 0; i < ring.listed.size(); ++i) {
        if (ring.numbers[i] != kNoNumber) ++memberships[static_cast<size_t>(ring.listed[i])];
      }
    }
    for (size_t i = 0; i < ranks_; ++i) {
      if (memberships[i] != Of(i).groups.size()) return false;
    }
    return true;
  }

  // Finds the lines of groups whose collectives take one dimension after the other.
  void FindLines() {
    if (machine_.graph == nullptr) return;
    using enum CollectiveType;
    const auto by_dim = [&](CollectiveType type) {
      const auto found = machine_.system.algorithms.find(type);
      return found != machine_.system.algorithms.end() &&
             GroupsUseDims(machine_, &found->second, type);
    };
    const bool all_by_dim =
        machine_.system.rules.empty() &&
        std::ranges::all_of(std::array{kAllReduce, kAllGather, kReduceScatter, kAllToAll}, by_dim);
    for (Ring& ring : groups_) {
      const GroupPlace place = PlaceOfGroup(travel_, machine_.dims.size(), ring.listed);
      ring.has_lines = all_by_dim && !place.grid.empty();
      for (size_t dim = 0; dim < place.grid.size(); ++dim) {
        std::map<int64_t, Ring> lines;  // by the rank with coordinate 0
        if (place.grid[dim].size() < 2) continue;
        std::vector<std::pair<int64_t, uint32_t>> members;  // with the number of the group
        for (size_t i = 0; i < ring.listed.size(); ++i) {
          members.emplace_back(ring.listed[i], ring.numbers[i]);
        }
        // Along a line by ascending coordinate.
        std::ranges::sort(members);
        for (const auto& [rank, number] : members) {
          Ring& line = lines[rank - travel_.Coordinate(rank, dim) * travel_.Stride(dim)];
          line.group = ring.group;
          line.dim = dim;
          line.listed.push_back(rank);
          line.numbers.push_back(number);
          ++line.count;
        }
        for (auto& [base, line] : lines) lines_.push_back(std::move(line));
      }
    }
  }

  // Returns false if a partner does not exist.
  bool FindPeers() {
    partners_.resize(ranks_);
    const auto number_of = [&](int64_t of, int64_t rank) {
      const std::vector<int64_t>& all = Of(static_cast<size_t>(of)).peers;
      const auto found = std::ranges::find(all, rank);
      return found == all.end() ? SimNode::kNobody : static_cast<uint32_t>(found - all.begin());
    };
    for (size_t i = 0; i < ranks_; ++i) {
      const auto rank = static_cast<int64_t>(i);
      for (const int64_t peer : Of(i).peers) {
        if (!IsRank(peer)) return false;
        partners_[i].push_back({.here = number_of(rank, peer), .there = number_of(peer, rank)});
      }
    }
    return true;
  }

  // Finds the paths of all messages that ranks may send. Returns false if they are too many.
  bool FindPaths() {
    struct Place {
      const Ring* ring = nullptr;
      int64_t index = 0;
    };
    std::vector<std::vector<Place>> places(ranks_);  // by number of the group
    for (size_t i = 0; i < ranks_; ++i) places[i].resize(Of(i).groups.size());
    for (const Ring& ring : groups_) {
      for (size_t i = 0; i < ring.listed.size(); ++i) {
        if (ring.numbers[i] == kNoNumber) continue;
        places[static_cast<size_t>(ring.listed[i])][ring.numbers[i]] = {
            .ring = &ring, .index = static_cast<int64_t>(i)};
      }
    }
    // By rank, number of the group and dimension.
    std::map<std::tuple<int64_t, uint32_t, size_t>, Place> in_lines;
    for (const Ring& line : lines_) {
      for (size_t i = 0; i < line.listed.size(); ++i) {
        if (line.numbers[i] == kNoNumber) continue;
        in_lines[{line.listed[i], line.numbers[i], line.dim}] = {.ring = &line,
                                                                 .index = static_cast<int64_t>(i)};
      }
    }
    std::vector<int64_t> partners;
    for (size_t i = 0; i < ranks_; ++i) {
      partners.clear();
      const auto rank = static_cast<int64_t>(i);
      for (const Place& place : places[i]) {
        if (place.ring == nullptr || place.ring->has_lines) continue;
        AddPartners(*place.ring, place.index, reach_of_groups_, partners);
      }
      for (auto at = in_lines.lower_bound({rank, 0, 0});
           at != in_lines.end() && std::get<0>(at->first) == rank; ++at) {
        AddPartners(*at->second.ring, at->second.index, reach_of_dim_[at->second.ring->dim],
                    partners);
      }
      partners.insert(partners.end(), Of(i).peers.begin(), Of(i).peers.end());
      for (size_t dim = 0; all_together_ && dim < machine_.dims.size(); ++dim) {
        const int64_t stride = travel_.Stride(dim);
        const int64_t index = travel_.Coordinate(rank, dim);
        const Ring line{
            .base = rank - index * stride, .stride = stride, .count = machine_.dims[dim].npus};
        AddPartners(line, index, reach_of_dim_[dim], partners);
      }
      if (all_together_ && whole_) {
        AddPartners({.count = travel_.total()}, rank, reach_of_dim_[0], partners);
      }
      if (!links_->AddRank(partners)) return false;
    }
    return true;
  }
  // Appends the members that one of them may send messages to.
  static void AddPartners(const Ring& ring, int64_t me, Reach reach,
                          std::vector<int64_t>& partners) {
    if (ring.count == 1) return;
    const auto add = [&](int64_t index) { partners.push_back(ring.RankAt(index % ring.count)); };
    const int64_t far = reach.all ? ring.count - 1 : 1;
    for (int64_t step = 1; step <= far; ++step) add(me + step);
    add(me + ring.count - 1);
    // Which of these partners is at which place depends on the member, so they are listed again.
    for (int64_t step = 1; reach.doubling && step < ring.count; step *= 2) {
      if ((me ^ step) < ring.count) add(me ^ step);
    }
  }

  // Adds the signatures of each rank's surroundings.
  void LookAround(std::vector<Signature>& signatures) const {
    std::vector<Signature> groups;  // of each rank, in the order of its groups
    std::vector<size_t> first(ranks_ + 1);
    for (size_t i = 0; i < ranks_; ++i) first[i + 1] = first[i] + Of(i).groups.size();
    groups.resize(first[ranks_]);
    const auto of_member = [&](const Ring& ring) {
      return [&](int64_t index) -> Signature* {
        const uint32_t number = ring.numbers[static_cast<size_t>(index)];
        if (number == kNoNumber) return nullptr;
        return &groups[first[static_cast<size_t>(ring.RankAt(index))] + number];
      };
    };
    for (const Ring& ring : groups_) {
      if (!ring.has_lines) AddMembers(ring, reach_of_groups_, of_member(ring));
    }
    for (const Ring& line : lines_) AddMembers(line, reach_of_dim_[line.dim], of_member(line));
    for (size_t i = 0; i < ranks_; ++i) {
      Signature all;
      all.Add(uint64_t{colors_[i]});
      for (size_t at = first[i]; at < first[i + 1]; ++at) all.Add(groups[at]);
      for (size_t number = 0; number < partners_[i].size(); ++number) {
        all.Add(uint64_t{partners_[i][number].here} << 32 | partners_[i][number].there);
        AddPartner(static_cast<int64_t>(i), Of(i).peers[number], all);
      }
      signatures[i] = all;
    }
    if (!all_together_) return;
    const auto of_rank = [&](const Ring& ring) {
      return [&](int64_t index) { return &signatures[static_cast<size_t>(ring.RankAt(index))]; };
    };
    for (size_t dim = 0; dim < machine_.dims.size(); ++dim) {
      for (int64_t rank = 0; rank < travel_.total(); ++rank) {
        if (travel_.Coordinate(rank, dim) != 0) continue;
        const Ring line{
            .base = rank, .stride = travel_.Stride(dim), .count = machine_.dims[dim].npus};
        AddMembers(line, reach_of_dim_[dim], of_rank(line));
      }
    }
    if (whole_) {
      Ring all{.group = -1, .count = travel_.total()};
      AddMembers(all, reach_of_dim_[0], of_rank(all));
    }
  }

  void AddPartner(int64_t me, int64_t partner, Signature& all) const {
    all.Add(uint64_t{colors_[static_cast<size_t>(partner)]});
    all.Add(travel_.WayOf(me, partner));
    all.Add(travel_.WayOf(partner, me));
  }

  // Adds, for each member that `signature_of` covers, the signatures of the others relative to it.
  template <typename SignatureOfMember>
  void AddMembers(const Ring& ring, Reach reach, SignatureOfMember signature_of) const {
    const bool turns = reach.all && (ring.group == 0 || ring.count > kMostPairs);
    for (int64_t i = 0; i < ring.count; ++i) {
      Signature* all = signature_of(i);
      if (all == nullptr) continue;
      all->Add(ring.count);
      if (ring.count == 1) continue;
      const auto add = [&](int64_t index) {
        AddPartner(ring.RankAt(i), ring.RankAt(index), *all);
        if (!ring.numbers.empty()) {
          all->Add(uint64_t{ring.numbers[static_cast<size_t>(index)]});
        }
      };
      const int64_t far = reach.all && !turns ? ring.count - 1 : 1;
      for (int64_t step = 1; step <= far; ++step) {
        add((i + step) % ring.count);
        add((i - step + ring.count) % ring.count);
      }
      if (!reach.doubling) continue;
      for (int64_t step = 1; step < ring.count; step *= 2) {
        if ((i ^ step) < ring.count) add(i ^ step);
      }
    }
    if (turns) AddTurns(ring, signature_of);
  }

  // Adds all other members in turn, starting at each member: polynomials modulo a prime, each
  // derived from the previous one. For groups, the distances between consecutive members in each
  // dimension are used, which are more specific than routes.
  template <typename SignatureOfMember>
  void AddTurns(const Ring& ring, SignatureOfMember signature_of) const {
    for (const uint64_t base : {0x1E3779B97F4A7C15ull, 0x02B2AE3D27D4EB4Full}) {
      std::vector<uint64_t> values;
      uint64_t turn = 0;
      uint64_t power = 1;  // after the loop: for the number of members
      for (int64_t i = 0; i < ring.count; ++i) {
        values.push_back(ValueOf(ring, i, base));
        turn = (Times(turn, base) + values.back()) % kPrime;
        power = Times(power, base);
      }
      for (size_t i = 0; i < values.size(); ++i) {
        if (Signature* all = signature_of(static_cast<int64_t>(i))) all->Add(turn);
        turn = (Times(turn, base) + values[i] + kPrime - Times(power, values[i])) % kPrime;
      }
    }
  }
  uint64_t ValueOf(const Ring& ring, int64_t index, uint64_t base) const {
    Signature one;
    const int64_t rank = ring.RankAt(index);
    one.Add(uint64_t{colors_[static_cast<size_t>(rank)]} ^ base);
    if (!ring.numbers.empty()) one.Add(uint64_t{ring.numbers[static_cast<size_t>(index)]});
    if (ring.group != 0) {
      const int64_t next = ring.RankAt((index + 1) % ring.count);
      for (size_t dim = 0; dim < machine_.dims.size(); ++dim) {
        const int64_t npus = machine_.dims[dim].npus;
        one.Add((travel_.Coordinate(next, dim) - travel_.Coordinate(rank, dim) + npus) % npus);
      }
    }
    return one.hash() % kPrime;
  }
  static uint64_t Times(uint64_t a, uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>(Wide{a} * b % kPrime);
  }

  // Numbers the kinds of groups: groups that members of a class have under the same number are of
  // one kind. Returns false if a rank is in two groups of a kind.
  bool NumberGroups(RankClasses& classes) const {
    std::vector<size_t> first{0};  // position of a class in `kinds`
    for (const int64_t rank : classes.first) {
      first.push_back(first.back() + Of(static_cast<size_t>(rank)).groups.size());
    }
    std::vector<size_t> kinds(first.back());
    std::iota(kinds.begin(), kinds.end(), size_t{0});
    const auto root = [&](size_t at) {
      while (kinds[at] != at) at = kinds[at] = kinds[kinds[at]];
      return at;
    };
    const auto place = [&](const Ring& ring, size_t index) {
      return first[colors_[static_cast<size_t>(ring.listed[index])]] + ring.numbers[index];
    };
    for (const Ring& ring : groups_) {
      std::optional<size_t> together;
      for (size_t i = 0; i < ring.listed.size(); ++i) {
        if (ring.numbers[i] == kNoNumber) continue;
        const size_t mine = root(place(ring, i));
        if (together) kinds[mine] = root(*together);
        together = mine;
      }
    }
    for (const Ring& ring : groups_) {
      size_t member = 0;
      while (ring.numbers[member] == kNoNumber) ++member;
      classes.kind_of_group[ring.group] = static_cast<int64_t>(root(place(ring, member))) + 1;
    }
    for (const int64_t rank : classes.first) {
      std::set<int64_t> seen;
      for (const int64_t group : Of(static_cast<size_t>(rank)).groups) {
        if (!seen.insert(classes.kind_of_group.at(group)).second) return false;
      }
    }
    return true;
  }

  static constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
  static constexpr int64_t kMostPairs = 2048;  // maximum group size for which pairs are examined
  static constexpr uint32_t kNoNumber = UINT32_MAX;

  const Travel travel_;
  const SimMachine& machine_;
  const SimWorkload& workload_;
  const size_t ranks_;
  std::vector<Reach> reach_of_dim_;
  Reach reach_of_groups_;
  std::unordered_map<const SimProgram*, std::set<uint32_t>> trees_;
  bool whole_ = false;                // an algorithm spans all dimensions
  bool all_together_ = false;         // a collective includes all ranks
  std::vector<Ring> groups_;          // groups in use
  std::vector<Ring> lines_;           // of groups that form grids, by group and dimension
  std::optional<LinkClasses> links_;  // of a network in which messages delay each other
  std::vector<std::vector<RankClasses::Acquaintance>> partners_;  // by rank
  std::vector<uint32_t> colors_;                                  // by rank
};

// Returns whether the algorithm fits all dimensions and groups. Where it does not, each member acts
// differently.
bool FitsAll(const AlgorithmInfo& info, const SimMachine& machine, const SimWorkload& workload) {
  return std::ranges::all_of(machine.dims,
                             [&](const NetworkDim& dim) { return info.Fits(dim.npus); }) &&
         std::ranges::all_of(workload.groups, [&](const auto& group) {
           return info.Fits(static_cast<int64_t>(group.second.size()));
         });
}

// Returns the types of the collectives of all ranks.
std::set<CollectiveType> TypesOf(const SimWorkload& workload) {
  std::set<const SimProgram*> seen;
  std::set<CollectiveType> types;
  for (const SimRank& rank : workload.ranks) {
    if (!seen.insert(rank.program.get()).second) continue;
    for (const SimNode& node : rank.program->nodes) types.insert(node.collective);
  }
  return types;
}

bool SharesMore(const SimMachine& machine, const SimWorkload& workload) {
  if (!machine.system.programs.empty() || !machine.system.plans.empty()) return true;
  if (machine.noise > 0) return true;
  // The order of the events of a bus is not watched for ties.
  if (machine.system.shared_bus) return true;
  if (machine.graph != nullptr && machine.routes == RouteChoice::kLeastLoaded) return true;
  const auto is_safe = [&](const AlgorithmChoice& choice) {
    const AlgorithmInfo& info = Info(choice.algorithm);
    // On ASTRA-sim's networks, only what fits runs at all.
    return info.class_safe() && (machine.graph == nullptr || FitsAll(info, machine, workload));
  };
  for (const auto& [type, choices] : machine.system.algorithms) {
    if (!std::ranges::all_of(choices, is_safe)) return true;
  }
  std::set<CollectiveType> used;
  for (const AlgorithmRule& rule : machine.system.rules) {
    if (used.empty()) used = TypesOf(workload);
    if (!used.contains(rule.type)) continue;
    // One tree of all ranks is no line of a dimension.
    const bool is_tree = OwnAlgorithm(rule.type) && rule.choices.front().whole;
    if (is_tree || !std::ranges::all_of(rule.choices, is_safe)) return true;
  }
  if (machine.memory.kind == RemoteMemoryKind::kNone ||
      machine.memory.kind == RemoteMemoryKind::kPerNpu) {
    return false;
  }
  return std::ranges::any_of(workload.ranks, [](const SimRank& rank) {
    return std::ranges::any_of(rank.program->nodes, [](const SimNode& node) {
      return node.kind == NodeKind::kMemLoad || node.kind == NodeKind::kMemStore;
    });
  });
}

}  // namespace

RankClasses EachRank(const SimWorkload& workload) {
  RankClasses classes;
  for (size_t i = 0; i < workload.ranks.size(); ++i) {
    classes.class_of.push_back(static_cast<uint32_t>(i));
    classes.first.push_back(static_cast<int64_t>(i));
  }
  for (const auto& [group, members] : workload.groups) classes.kind_of_group[group] = group;
  return classes;
}

RankClasses FindRankClasses(const SimMachine& machine, const SimWorkload& workload) {
  if (SharesMore(machine, workload)) return EachRank(workload);
  std::optional<RankClasses> classes = Refiner(machine, workload).Run();
  return classes ? *std::move(classes) : EachRank(workload);
}

}  // namespace etude
