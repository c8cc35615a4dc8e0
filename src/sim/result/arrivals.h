#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "src/sim/collective/group_place.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/machine/machine.h"
#include "src/sim/machine/travel.h"
#include "src/sim/program/sim_program.h"
#include "src/trace/words/enums.h"

namespace etude {

// Collectives of one kind, summed over groups.
struct SimCollectiveAccount {
  CollectiveType type = CollectiveType::kUnknown;
  int64_t bytes = 0;    // as stated by the job: input size of a rank
  int64_t members = 0;  // ranks per group
  bool in_group = false;
  // Network dimensions: bit i for dimension i. None for a group with one ring, tree or exchange
  // across dimensions.
  uint32_t dims = 0;
  uint64_t count = 0;
  uint64_t unfinished = 0;  // included in `count`, excluded from times
  int64_t time = 0;         // from the first begin to the last end, summed
  int64_t skew = 0;         // part of `time` before the last begin
  int64_t moving = 0;       // part of `time` that bandwidths use: from when data can move, summed
};

// Matches simulated communications: the n-th collectives of one type and group belong together, and
// so do the n-th messages of two ranks with one tag and size.
class Arrivals {
 public:
  static constexpr int64_t kNever = INT64_MAX;

  // The arguments must outlive the object.
  Arrivals(const SimMachine& machine, const SimWorkload& workload, const SimResult& result);

  // Returns when the last participant reached a node's communication; kNever if some have not. By
  // rank class and node of its program.
  int64_t Of(size_t rank_class, uint32_t node) const { return come_[rank_class][node]; }
  // Returns a participant that has not arrived.
  std::optional<int64_t> AbsentFrom(size_t rank_class, uint32_t node) const;
  // A participant that reached an unfinished collective with a different size, after all arrived.
  struct Other {
    int64_t rank = 0;
    uint32_t node = 0;  // of its program
  };
  std::optional<Other> OtherSizeAt(size_t rank_class, uint32_t node) const;
  // By time, descending.
  const std::vector<SimCollectiveAccount>& collectives() const { return collectives_; }
  const SimMachine& machine() const { return machine_; }

 private:
  // Nodes of a program that communicate with the same ranks: number of the group within the rank,
  // and dimensions.
  struct Circle {
    uint32_t group = 0;
    uint32_t dims = 0;

    friend auto operator<=>(const Circle&, const Circle&) = default;
  };
  // Identifies the members of a circle: the group, or the rank with coordinate 0 along the
  // dimensions.
  using Place = std::pair<int64_t, int64_t>;
  // Groups with the same rank classes in the same roles are equivalent.
  using Roles = std::vector<std::pair<uint32_t, Circle>>;
  // Nodes of one type and circle, in begin order.
  using Calls = std::map<std::pair<Circle, CollectiveType>, std::vector<uint32_t>>;
  // Messages of a class, by number of the peer.
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
  // Returns the number of dimensions that a node can name.
  size_t Dims() const;
  Circle CircleOf(const SimRank& rank, const SimNode& node) const;
  Place PlaceOf(int64_t rank, const Circle& circle) const;
  int64_t MembersOf(const Place& place) const;
  // Returns the dimensions along which collectives of a group go.
  uint32_t DimsOfGroup(CollectiveType type, int64_t ranks, int64_t bytes,
                       const GroupPlace& place) const;
  // Returns whether the rank is the root of the node's collective. Requires a collective with a
  // root.
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
  // During construction: begun communications, in begin order.
  std::vector<std::vector<uint32_t>> order_;
  std::vector<std::vector<int64_t>> come_;
  std::map<std::pair<size_t, uint32_t>, int64_t> absent_;
  std::map<std::pair<size_t, uint32_t>, Other> other_size_;
  std::map<std::tuple<CollectiveType, int64_t, int64_t, int64_t>, SimCollectiveAccount> accounts_;
  std::vector<SimCollectiveAccount> collectives_;
  std::map<std::pair<size_t, NodeKind>, Ends> ends_;
};

}  // namespace etude
