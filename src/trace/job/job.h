#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/container/csr.h"
#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/base/units.h"
#include "src/trace/job/mesh.h"
#include "src/trace/job/rank_set.h"
#include "src/trace/trace.h"
#include "src/trace/words/enums.h"

// A job of many ranks. Ranks that do the same form a class with one program, and a communication is
// stored once for all participants. docs/models/job.md lists what is kept.
namespace etude {

// Process groups of one kind, such as the data-parallel groups. A rank is in at most one of them.
struct GroupKind {
  // Axes of the mesh that the groups span; nullopt: the groups are `listed`.
  std::optional<AxisSet> axes;
  std::vector<RankSet> listed;  // disjoint
  // Name of each group. Empty: the names are numbers, `first_name` and every `name_step` after it,
  // all below 2^31.
  std::vector<std::string> names;
  int64_t first_name = 0;
  int64_t name_step = 1;
  // True if `listed` has only the ranks whose traces name the group; other members are unknown.
  bool callers_only = false;

  // Returns the group of `rank`; nullopt if it is in none.
  std::optional<int64_t> GroupOf(const Mesh& mesh, int64_t rank) const;
  std::vector<int64_t> RanksOf(const Mesh& mesh, int64_t group) const;
  // Returns the name of `group`; "" for a group along the axes that no rank with a trace is in and
  // that may not exist.
  std::string NameOf(int64_t group) const;
};

// Senders and receivers of a message.
struct Route {
  // Offset from sender to receiver along each axis of the mesh, wrapping around; empty: see
  // `pairs`.
  std::vector<int64_t> shift;
  std::vector<std::pair<int64_t, int64_t>> pairs;  // sender and receiver, ascending

  // Return the partner with index `number` among the ascending receivers of `sender`, or among the
  // ascending senders to `receiver`.
  std::optional<int64_t> ReceiverOf(const Mesh& mesh, int64_t sender, size_t number) const;
  std::optional<int64_t> SenderTo(const Mesh& mesh, int64_t receiver, size_t number) const;
};

// Part of one class in a communication.
struct CommPart {
  size_t rank_class = 0;     // index
  NodeId node;               // in the class's program
  size_t number = 0;         // for messages: index of the partner among those of the route
  bool states_self = false;  // the trace also names the rank itself as one end of the message
};

// One communication as all participants see it: a collective of all groups of a kind, or a message
// of all pairs of a route.
struct CommEvent {
  static constexpr size_t kNone = SIZE_MAX;

  bool is_message = false;
  // Facts that all parts share; the programs contain the others.
  CollectiveType type = CollectiveType::kUnknown;
  std::optional<Bytes> bytes;
  std::optional<int64_t> root;
  std::optional<int64_t> tag;
  size_t group = kNone;  // GroupKind of a collective; kNone: an unnamed group
  size_t route = kNone;  // for messages; kNone: unknown partner
  // Last event that may precede the receipt of the message; at least this event itself.
  size_t received_after = 0;
  std::vector<CommPart> parts;  // for collectives, one per class
};

// Ranks with the same program.
struct RankClass {
  RankSet ranks;
  // Program of each rank. Its process groups are named "@0", "@1" …; facts that the events contain
  // are omitted.
  Trace program;
  struct Group {
    size_t kind = 0;      // GroupKind of "@i"
    bool listed = false;  // the trace lists the ranks of the group
  };
  std::vector<Group> groups;
  bool states_rank = false;     // the trace contains its rank
  bool peers_in_names = false;  // "{peer}" in names of messages stands for the partner's rank
};

// Facts that may differ between traces of one class.
struct RankFacts {
  std::string time;
  std::optional<int64_t> pid;
  std::optional<int64_t> start_ts;
  std::optional<int64_t> finish_ts;

  friend bool operator==(const RankFacts&, const RankFacts&) = default;
};

struct Job {
  Mesh mesh;
  std::vector<GroupKind> group_kinds;
  std::vector<Route> routes;
  std::vector<RankClass> classes;
  // In an order that is possible on all ranks. A message is at the position where it is sent:
  // senders do not wait for receivers.
  std::vector<CommEvent> events;
  std::map<int64_t, RankFacts> facts;  // only ranks that have any

  // Returns the index of the class of `rank`; nullopt if the job has no trace of it.
  std::optional<size_t> ClassOf(int64_t rank) const;
  int64_t rank_count() const;
};

// Converts the group name "@3" to 3 and back.
std::optional<size_t> GroupOfName(std::string_view name);
std::string NameOfGroup(size_t group);
inline constexpr std::string_view kPeerInName = "{peer}";

// Checks consistency. kBadInput unless classes are disjoint and on the mesh, each node is part of
// at most one communication, all group members with a trace take part in its collectives, sender
// and receiver of a message match, and no communication in a program waits for a later one (no
// deadlock).
Status CheckJob(const Job& job);

// Part of a node in a communication.
struct EventOfNode {
  NodeId node;
  const CommEvent* event = nullptr;
  const CommPart* part = nullptr;
};

// Communications of each class, by node. Construct once for work on many classes or ranks. Refers
// to the job's events. O(n log n) for n parts.
class ClassEvents {
 public:
  explicit ClassEvents(const Job& job);

  std::span<const EventOfNode> operator[](size_t rank_class) const { return events_[rank_class]; }

 private:
  Csr<EventOfNode> events_;
};

// Program of a class, which may be stored outside of the job.
struct ClassProgram {
  size_t rank_class = 0;
  const Trace& program;
  std::span<const EventOfNode> events;  // those of the class
};

// Returns the trace of one rank as the recording tool would have written it. kBadInput if the job
// has none.
Result<Trace> TraceOfRank(const Job& job, int64_t rank, const Limits& limits = {});
Result<Trace> TraceOfRank(const Job& job, const ClassEvents& events, int64_t rank,
                          const Limits& limits = {});
Result<Trace> TraceOfRank(const Job& job, const ClassProgram& of, int64_t rank,
                          const Limits& limits = {});

// Returns the program of a class as a stand-alone trace that includes the facts of its events, for
// files that other tools read. Ranks of partners and of the class itself are 0. WithoutEvents is
// the inverse.
Result<Trace> WithEvents(std::span<const EventOfNode> events, const Trace& program,
                         const Limits& limits = {});
Result<Trace> WithoutEvents(std::span<const EventOfNode> events, const Trace& program,
                            const Limits& limits = {});

}  // namespace etude
