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

// A job of many ranks: ranks that do the same are a class with one program, and a communication
// exists once, for all who take part in it. docs/models/job.md says what is kept.
namespace etude {

// Process groups of one kind, of which a rank is in one at most: those of the data-parallel ranks,
// say.
struct GroupKind {
  // The groups are those of the mesh along these axes, or else the listed ones.
  std::optional<AxisSet> axes;
  std::vector<RankSet> listed;  // disjoint
  // By group; empty: the groups are named by numbers, `name_step` apart, both below 2^31.
  std::vector<std::string> names;
  int64_t first_name = 0;
  int64_t name_step = 1;
  // The ranks are those whose traces name the group; who else is in it is not known.
  bool callers_only = false;

  // The group of `rank`; nullopt: it is in none.
  std::optional<int64_t> GroupOf(const Mesh& mesh, int64_t rank) const;
  std::vector<int64_t> RanksOf(const Mesh& mesh, int64_t group) const;
  // "": of a group along the axes that no rank with a trace is in, and that need not exist.
  std::string NameOf(int64_t group) const;
};

// Who sends to whom.
struct Route {
  // A receiver is so far from its sender along the axes of the mesh, around their ends; empty: by
  // `pairs`.
  std::vector<int64_t> shift;
  std::vector<std::pair<int64_t, int64_t>> pairs;  // sender and receiver, ascending

  // Of the ranks that `sender` sends to, ascending, the one with this number; likewise of those
  // that send to `receiver`.
  std::optional<int64_t> ReceiverOf(const Mesh& mesh, int64_t sender, size_t number) const;
  std::optional<int64_t> SenderTo(const Mesh& mesh, int64_t receiver, size_t number) const;
};

// What the ranks of one class do in a communication.
struct CommPart {
  size_t rank_class = 0;     // index
  NodeId node;               // of its program
  size_t number = 0;         // of the partner among those of the route, for messages
  bool states_self = false;  // the trace names the rank itself, too, as one end of the message
};

// A collective of all groups of a kind, or a message of all pairs of a route: one communication, as
// all who take part see it.
struct CommEvent {
  static constexpr size_t kNone = SIZE_MAX;

  bool is_message = false;
  // Facts that all parts share; the others stand in the programs.
  CollectiveType type = CollectiveType::kUnknown;
  std::optional<Bytes> bytes;
  std::optional<int64_t> root;
  std::optional<int64_t> tag;
  size_t group = kNone;  // GroupKind of a collective; kNone: of an unnamed group
  size_t route = kNone;  // of a message; kNone: the partner is not known
  // Events up to this one may come before the message is received; at least itself does.
  size_t received_after = 0;
  std::vector<CommPart> parts;  // of a collective, one a class
};

// Ranks that do the same.
struct RankClass {
  RankSet ranks;
  // What each of them does. Its process groups are named "@0", "@1" …; what events say of a
  // communication is left out.
  Trace program;
  struct Group {
    size_t kind = 0;      // GroupKind of "@i"
    bool listed = false;  // the trace lists the ranks of the group
  };
  std::vector<Group> groups;
  bool states_rank = false;     // the trace says its rank
  bool peers_in_names = false;  // "{peer}" in names of messages stands for the partner's rank
};

// What traces of one class may differ in.
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
  // In an order in which they can happen on all ranks, messages where they are sent: a sender does
  // not wait for its receiver.
  std::vector<CommEvent> events;
  std::map<int64_t, RankFacts> facts;  // of ranks that have any

  // Index of the class of `rank`; nullopt: the job has no trace of it.
  std::optional<size_t> ClassOf(int64_t rank) const;
  int64_t rank_count() const;
};

// The group that "@3" of a program names: 3.
std::optional<size_t> GroupOfName(std::string_view name);
std::string NameOfGroup(size_t group);
inline constexpr std::string_view kPeerInName = "{peer}";

// kBadInput unless everything fits together: classes are disjoint and on the mesh; a node is part
// of one communication; of a group all members that have a trace take part in its collectives; of a
// message the receiver's partner is its sender; and in no program a communication waits for one
// that comes later, so that nobody waits for ever.
Status CheckJob(const Job& job);

// What a node is of a communication.
struct EventOfNode {
  NodeId node;
  const CommEvent* event = nullptr;
  const CommPart* part = nullptr;
};

// The communications of each class, by node: to be made once for what is done with many classes or
// ranks. Refers to the job's events. O(n log n) for n parts.
class ClassEvents {
 public:
  explicit ClassEvents(const Job& job);

  std::span<const EventOfNode> operator[](size_t rank_class) const { return events_[rank_class]; }

 private:
  Csr<EventOfNode> events_;
};

// A class's program, which may be kept elsewhere than in the job.
struct ClassProgram {
  size_t rank_class = 0;
  const Trace& program;
  std::span<const EventOfNode> events;  // the class's
};

// The trace of one rank as the job's tool would have written it. kBadInput if the job has none.
Result<Trace> TraceOfRank(const Job& job, int64_t rank, const Limits& limits = {});
Result<Trace> TraceOfRank(const Job& job, const ClassEvents& events, int64_t rank,
                          const Limits& limits = {});
Result<Trace> TraceOfRank(const Job& job, const ClassProgram& of, int64_t rank,
                          const Limits& limits = {});

// The program of a class as a trace of its own, with what its events say of its communications: for
// files, which other tools look at. Partners, and the rank itself, are 0. WithoutEvents is the way
// back.
Result<Trace> WithEvents(std::span<const EventOfNode> events, const Trace& program,
                         const Limits& limits = {});
Result<Trace> WithoutEvents(std::span<const EventOfNode> events, const Trace& program,
                            const Limits& limits = {});

}  // namespace etude
