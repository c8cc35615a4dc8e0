#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "src/sim/engine/simulator.h"
#include "src/sim/machine/machine.h"
#include "src/sim/machine/travel.h"
#include "src/sim/program/sim_program.h"
#include "src/trace/words/enums.h"

namespace etude {

// Collectives that are alike, of all groups.
struct SimCollectiveAccount {
  CollectiveType type = CollectiveType::kUnknown;
  int64_t bytes = 0;    // as the job says: what a rank puts in
  int64_t members = 0;  // ranks of a group
  bool in_group = false;
  uint32_t dims = 0;  // of the network, unless it is of a group: bit i for dimension i
  uint64_t count = 0;
  uint64_t unfinished = 0;  // of them, which count in no time
  int64_t time = 0;         // from the first begin to the last end, summed
  int64_t skew = 0;         // of it, before the last begin
  int64_t moving = 0;       // of it, what bandwidths count: from when data can move, summed
};

// Who meets whom in what was simulated: the first, second … collective of one type of a group, and
// the first, second … message of two ranks with one tag and size, belong together.
class Arrivals {
 public:
  static constexpr int64_t kNever = INT64_MAX;

  // All must outlive it.
  Arrivals(const SimMachine& machine, const SimWorkload& workload, const SimResult& result);

  // When the last participant of a node's communication had come to it; kNever: some have not. By
  // class of ranks and node of its program.
  int64_t Of(size_t rank_class, uint32_t node) const { return come_[rank_class][node]; }
  // One who has not come.
  std::optional<int64_t> AbsentFrom(size_t rank_class, uint32_t node) const;
  // Where all have come to a collective that does not end: one who has come with other bytes.
  struct Other {
    int64_t rank = 0;
    uint32_t node = 0;  // of its program
  };
  std::optional<Other> OtherSizeAt(size_t rank_class, uint32_t node) const;
  // By time, the most first.
  const std::vector<SimCollectiveAccount>& collectives() const { return collectives_; }

 private:
  // Of those of a program's nodes that communicate with the same others: which group it is of, by
  // its number among those of a rank, and along which dimensions.
  struct Circle {
    uint32_t group = 0;
    uint32_t dims = 0;

    friend auto operator<=>(const Circle&, const Circle&) = default;
  };
  // What those who are in one have in common: the group, or the rank that is 0 along the
  // dimensions.
  using Place = std::pair<int64_t, int64_t>;
  // Groups with the same classes of ranks in the same roles are alike.
  using Roles = std::vector<std::pair<uint32_t, Circle>>;
  // Nodes of one type and one circle, in the order in which they were begun.
  using Calls = std::map<std::pair<Circle, CollectiveType>, std::vector<uint32_t>>;
  // Messages of a class by the numbers of its peers.
  using Ends = std::map<uint32_t, std::vector<uint32_t>>;
  struct MessageKey {
    int64_t tag = 0;
    int64_t bytes = 0;

    friend auto operator<=>(const MessageKey&, const MessageKey&) = default;
  };
  using Messages = std::map<MessageKey, std::vector<uint32_t>>;

  const SimRank& RankAt(int64_t rank) const { return workload_.ranks[static_cast<size_t>(rank)]; }
  const SimProgram& ProgramOf(size_t rank_class) const {
    return *RankAt(result_.first[rank_class]).program;
  }
  // Those that a node can name.
  size_t Dims() const;
  Circle CircleOf(const SimRank& rank, const SimNode& node) const;
  Place PlaceOf(int64_t rank, const Circle& circle) const;
  int64_t MembersOf(const Place& place) const;
  // Whether the rank is the root of the node's collective, which has one.
  bool IsRoot(int64_t rank, const SimNode& node) const;

  std::vector<uint32_t> IssueOrder(size_t rank_class) const;
  void FindCollectives();
  void Meet(const Roles& roles, CollectiveType type, const std::vector<Calls>& calls,
            uint64_t count, const Place& place);
  std::optional<int64_t> StrangerTo(const Roles& roles, const Place& place) const;
  void FindMessages();
  const Ends& EndsOf(size_t rank_class, NodeKind kind);
  Messages MessagesWith(int64_t rank, int64_t peer, NodeKind kind);
  void Pair(size_t rank_class, NodeKind kind, NodeKind other);

  const SimMachine& machine_;
  const SimWorkload& workload_;
  const SimResult& result_;
  const Travel travel_;
  // While it is made: communications that were begun, in that order.
  std::vector<std::vector<uint32_t>> order_;
  std::vector<std::vector<int64_t>> come_;
  std::map<std::pair<size_t, uint32_t>, int64_t> absent_;
  std::map<std::pair<size_t, uint32_t>, Other> other_size_;
  std::map<std::tuple<CollectiveType, int64_t, int64_t, int64_t>, SimCollectiveAccount> accounts_;
  std::vector<SimCollectiveAccount> collectives_;
  std::map<std::pair<size_t, NodeKind>, Ends> ends_;
};

}  // namespace etude
