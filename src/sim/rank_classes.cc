#include "src/sim/rank_classes.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "src/sim/travel.h"

namespace etude {
namespace {

// Of many numbers; two of them are the same by chance once in 2^128.
class Signature {
 public:
  void Add(uint64_t value) {
    low_ = Mix(low_ ^ value);
    high_ = Mix(high_ + value * 0xD6E8FEB86659FD93ull);
  }
  void Add(int64_t value) { Add(static_cast<uint64_t>(value)); }
  void Add(Travel::Way way) {
    Add(uint64_t{way.dim});
    Add(way.hops);
  }

  friend bool operator==(const Signature&, const Signature&) = default;
  size_t hash() const { return low_; }

 private:
  static uint64_t Mix(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
    return (value ^ (value >> 31)) + 0x9E3779B97F4A7C15ull;
  }

  uint64_t low_ = 0x243F6A8885A308D3ull;
  uint64_t high_ = 0x13198A2E03707344ull;
};
struct SignatureHash {
  size_t operator()(const Signature& signature) const { return signature.hash(); }
};

// What a rank does, but for who the others are.
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
    all.Add(uint64_t{program.waits[i]});
    for (const uint32_t child : program.children[i]) all.Add(uint64_t{child});
    all.Add(UINT64_MAX);
  }
  return all;
}

class Refiner {
 public:
  Refiner(const SimMachine& machine, const SimWorkload& workload)
      : travel_(machine), machine_(machine), workload_(workload), ranks_(workload.ranks.size()) {
    for (const auto& [type, choices] : machine.system.algorithms) {
      for (const AlgorithmChoice& choice : choices) {
        far_ = far_ || choice.algorithm != CollectiveAlgorithm::kRing;
        whole_ = whole_ || choice.whole;
      }
    }
  }

  std::optional<RankClasses> Run() {
    std::vector<Signature> signatures(ranks_);
    std::unordered_map<const SimProgram*, Signature> known;
    for (size_t i = 0; i < ranks_; ++i) {
      const auto [found, is_new] = known.try_emplace(Of(i).program.get());
      if (is_new) found->second = SignatureOf(*Of(i).program);
      signatures[i] = found->second;
    }
    size_t count = Number(signatures);
    while (count < ranks_) {
      for (size_t i = 0; i < ranks_; ++i) signatures[i] = Around(i);
      const size_t finer = Number(signatures);
      if (finer == count) break;
      count = finer;
    }
    RankClasses classes;
    classes.class_of = colors_;
    classes.first.assign(count, -1);
    for (size_t i = ranks_; i-- > 0;) classes.first[colors_[i]] = static_cast<int64_t>(i);
    if (!NumberGroups(classes) || !MessagesAreTold(classes)) return std::nullopt;
    return classes;
  }

 private:
  const SimRank& Of(size_t rank) const { return workload_.ranks[rank]; }

  size_t Number(const std::vector<Signature>& signatures) {
    std::unordered_map<Signature, uint32_t, SignatureHash> numbers;
    colors_.resize(ranks_);
    for (size_t i = 0; i < ranks_; ++i) {
      colors_[i] =
          numbers.emplace(signatures[i], static_cast<uint32_t>(numbers.size())).first->second;
    }
    return numbers.size();
  }

  void AddPartner(size_t rank, int64_t partner, Signature& all) const {
    const auto me = static_cast<int64_t>(rank);
    all.Add(uint64_t{colors_[static_cast<size_t>(partner)]});
    all.Add(travel_.WayOf(me, partner));
    all.Add(travel_.WayOf(partner, me));
  }
  template <typename RankAt>
  void AddMembers(size_t rank, int64_t me, int64_t count, bool far, RankAt rank_at,
                  Signature& all) const {
    all.Add(count);
    const int64_t steps = far ? count - 1 : std::min<int64_t>(1, count - 1);
    for (int64_t step = 1; step <= steps; ++step) {
      AddPartner(rank, rank_at((me + step) % count), all);
      AddPartner(rank, rank_at((me - step + count) % count), all);
    }
  }

  Signature Around(size_t rank) const {
    Signature all;
    all.Add(uint64_t{colors_[rank]});
    const auto me = static_cast<int64_t>(rank);
    for (size_t i = 0; i < machine_.dims.size(); ++i) {
      const int64_t base = me - travel_.Coordinate(me, i) * travel_.Stride(i);
      AddMembers(
          rank, travel_.Coordinate(me, i), machine_.dims[i].npus, far_,
          [&](int64_t index) { return base + index * travel_.Stride(i); }, all);
    }
    if (whole_) {
      AddMembers(
          rank, me, travel_.total(), far_, [](int64_t index) { return index; }, all);
    }
    for (const int64_t group : Of(rank).groups) {
      const auto found = workload_.groups.find(group);
      if (found == workload_.groups.end()) continue;
      const std::vector<int64_t>& members = found->second;
      const auto place = std::ranges::find(members, me) - members.begin();
      if (place == static_cast<int64_t>(members.size())) continue;
      AddMembers(
          rank, place, static_cast<int64_t>(members.size()), far_,
          [&](int64_t index) { return members[static_cast<size_t>(index)]; }, all);
    }
    for (const int64_t peer : Of(rank).peers) {
      if (peer >= 0 && peer < static_cast<int64_t>(ranks_)) AddPartner(rank, peer, all);
    }
    return all;
  }

  // False: a rank is in two groups that classes do not tell apart.
  bool NumberGroups(RankClasses& classes) const {
    // Of each member its class, and which of its groups this is.
    std::map<std::vector<std::pair<uint32_t, int64_t>>, int64_t> kinds;
    for (const auto& [group, members] : workload_.groups) {
      std::vector<std::pair<uint32_t, int64_t>> colors;
      for (const int64_t member : members) {
        if (member < 0 || member >= static_cast<int64_t>(ranks_)) return false;
        const auto rank = static_cast<size_t>(member);
        const std::vector<int64_t>& all = Of(rank).groups;
        colors.emplace_back(colors_[rank], std::ranges::find(all, group) - all.begin());
      }
      classes.kind_of_group[group] =
          kinds.emplace(std::move(colors), static_cast<int64_t>(kinds.size()) + 1).first->second;
    }
    for (const int64_t rank : classes.first) {
      std::set<int64_t> seen;
      for (const int64_t group : Of(static_cast<size_t>(rank)).groups) {
        const auto kind = classes.kind_of_group.find(group);
        if (kind != classes.kind_of_group.end() && !seen.insert(kind->second).second) return false;
      }
    }
    return true;
  }

  // False: a rank has messages from or to several ranks of a class, which would get mixed up.
  bool MessagesAreTold(const RankClasses& classes) const {
    for (const int64_t rank : classes.first) {
      std::set<uint32_t> seen;
      for (const int64_t peer : Of(static_cast<size_t>(rank)).peers) {
        if (peer < 0 || peer >= static_cast<int64_t>(ranks_)) return false;
        if (!seen.insert(colors_[static_cast<size_t>(peer)]).second) return false;
        // And each class its own.
        if (CountOf(classes, colors_[static_cast<size_t>(peer)]) !=
            CountOf(classes, colors_[static_cast<size_t>(rank)])) {
          return false;
        }
      }
    }
    return true;
  }
  static int64_t CountOf(const RankClasses& classes, uint32_t number) {
    return std::ranges::count(classes.class_of, number);
  }

  const Travel travel_;
  const SimMachine& machine_;
  const SimWorkload& workload_;
  const size_t ranks_;
  bool far_ = false;  // some algorithm has more partners than neighbours
  bool whole_ = false;
  std::vector<uint32_t> colors_;  // by rank
};

bool SharesMore(const SimMachine& machine, const SimWorkload& workload) {
  if (machine.congestion || !machine.system.programs.empty()) return true;
  for (const auto& [type, choices] : machine.system.algorithms) {
    for (const AlgorithmChoice& choice : choices) {
      if (choice.algorithm == CollectiveAlgorithm::kDoubleBinaryTree) return true;
    }
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
