#include "src/trace/job/job.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "src/trace/trace_copy.h"

namespace etude {
namespace {

const EventOfNode* FindEvent(std::span<const EventOfNode> events, NodeId node) {
  const auto at = std::ranges::lower_bound(events, node, {}, &EventOfNode::node);
  return at != events.end() && at->node == node ? &*at : nullptr;
}

// Adds the facts of the event. Peers that depend on the rank are 0.
void AddEventFacts(const EventOfNode& of, NodeKind kind, Comm& comm) {
  const CommEvent& event = *of.event;
  if (!event.is_message) comm.type = event.type;
  if (event.bytes) comm.bytes = event.bytes;
  if (event.root) comm.root = event.root;
  if (event.tag) comm.tag = event.tag;
  if (of.part->states_self) comm.self(kind) = 0;
  if (event.route != CommEvent::kNone) comm.peer(kind) = 0;
}

void RemoveEventFacts(const EventOfNode& of, NodeKind kind, Comm& comm) {
  const CommEvent& event = *of.event;
  if (!event.is_message) comm.type = CollectiveType::kUnknown;
  if (event.bytes) comm.bytes.reset();
  if (event.root) comm.root.reset();
  if (event.tag) comm.tag.reset();
  if (of.part->states_self) comm.self(kind).reset();
  if (event.route != CommEvent::kNone) comm.peer(kind).reset();
}

Result<Trace> ChangeEvents(std::span<const EventOfNode> events, const Trace& program,
                           void (*change_facts)(const EventOfNode&, NodeKind, Comm&),
                           const Limits& limits) {
  TraceBuilder builder(limits, program);
  TraceChange change;
  change.node = [&](NodeId node, NodeRow& row, std::optional<Comm>& comm) {
    const EventOfNode* of = FindEvent(events, node);
    if (of != nullptr && comm) change_facts(*of, row.kind, *comm);
  };
  return CopyTrace(program, builder, change);
}

std::string NameWithPeer(std::string_view name, int64_t peer) {
  std::string text;
  for (size_t at = 0; at < name.size();) {
    const size_t found = name.find(kPeerInName, at);
    text += name.substr(at, found - at);
    if (found == std::string_view::npos) break;
    text += std::to_string(peer);
    at = found + kPeerInName.size();
  }
  return text;
}

// Makes the trace of one rank from its class's program.
class RankMaker {
 public:
  RankMaker(const Job& job, const ClassProgram& of, int64_t rank, const Limits& limits)
      : job_(job),
        class_(job.classes[of.rank_class]),
        program_(of.program),
        rank_(rank),
        events_(of.events),
        builder_(limits, of.program) {}

  Result<Trace> Run() {
    for (size_t i = 0; i < class_.groups.size(); ++i) {
      const GroupKind& kind = job_.group_kinds[class_.groups[i].kind];
      const std::optional<int64_t> group = kind.GroupOf(job_.mesh, rank_);
      if (!group) {
        return BadInput(
            fmt::format("rank {}: found no group for {} of its class", rank_, NameOfGroup(i)));
      }
      names_.push_back(builder_.Intern(kind.NameOf(*group)));
      members_.push_back(IntListId::None());
      if (class_.groups[i].listed) {
        members_.back() = builder_.InternInts(kind.RanksOf(job_.mesh, *group));
      }
    }
    TraceChange change;
    change.node = [&](NodeId node, NodeRow& row, std::optional<Comm>& comm) {
      ChangeNode(node, row, comm);
    };
    change.group = [&](ProcessGroup& group) { ChangeGroup(group); };
    change.info = [&](TraceInfo& info) { ChangeInfo(info); };
    return CopyTrace(program_, builder_, change);
  }

 private:
  StringId NameOf(StringId name) const {
    const std::optional<size_t> group = GroupOfName(builder_.text(name));
    return group && *group < names_.size() ? names_[*group] : name;
  }

  void ChangeGroup(ProcessGroup& group) {
    const std::optional<size_t> number = GroupOfName(builder_.text(group.name));
    if (number && *number < members_.size() && members_[*number]) group.ranks = members_[*number];
    group.name = NameOf(group.name);
  }

  void ChangeInfo(TraceInfo& info) {
    if (class_.states_rank) info.rank = rank_;
    const auto facts = job_.facts.find(rank_);
    if (facts == job_.facts.end()) return;
    info.time = facts->second.time;
    info.pid = facts->second.pid;
    info.start_ts = facts->second.start_ts;
    info.finish_ts = facts->second.finish_ts;
  }

  void ChangeNode(NodeId node, NodeRow& row, std::optional<Comm>& comm) {
    if (!comm) return;
    comm->group = NameOf(comm->group);
    const EventOfNode* of = FindEvent(events_, node);
    if (of == nullptr) return;
    AddEventFacts(*of, row.kind, *comm);
    if (of->part->states_self) comm->self(row.kind) = rank_;
    if (of->event->route == CommEvent::kNone) return;
    const bool sends = row.kind == NodeKind::kSend;
    const Route& route = job_.routes[of->event->route];
    const std::optional<int64_t> peer = sends ? route.ReceiverOf(job_.mesh, rank_, of->part->number)
                                              : route.SenderTo(job_.mesh, rank_, of->part->number);
    comm->peer(row.kind) = peer;
    if (class_.peers_in_names && peer) {
      row.name = builder_.Intern(NameWithPeer(builder_.text(row.name), *peer));
    }
  }

  const Job& job_;
  const RankClass& class_;
  const Trace& program_;
  const int64_t rank_;
  const std::span<const EventOfNode> events_;
  TraceBuilder builder_;
  std::vector<StringId> names_;     // by group of the class
  std::vector<IntListId> members_;  // by group of the class; kNone: not listed
};

// Implementation of CheckJob.
class JobChecker {
 public:
  explicit JobChecker(const Job& job) : job_(job) {}

  Status Run() {
    ETUDE_RETURN_IF_ERROR(CheckClasses());
    for (const RankClass& one : job_.classes) event_of_.emplace_back(one.program.node_count(), -1);
    for (size_t i = 0; i < job_.events.size(); ++i) ETUDE_RETURN_IF_ERROR(CheckEvent(i));
    for (size_t i = 0; i < job_.classes.size(); ++i) {
      ETUDE_RETURN_IF_ERROR(CheckNothingLeftOut(i));
      ETUDE_RETURN_IF_ERROR(CheckOrder(i));
    }
    return {};
  }

 private:
  Status CheckClasses() {
    std::vector<std::pair<int64_t, size_t>> firsts;
    for (size_t i = 0; i < job_.classes.size(); ++i) {
      const RankClass& one = job_.classes[i];
      if (one.ranks.size() == 0)
        return BadInput(fmt::format("class {}: found no ranks, expected at least one", i));
      if (one.ranks.At(one.ranks.size() - 1) >= job_.mesh.size()) {
        return BadInput(fmt::format("class {}: found rank {}, expected ranks of the mesh of {}", i,
                                    one.ranks.At(one.ranks.size() - 1), job_.mesh.size()));
      }
      ETUDE_RETURN_IF_ERROR(CheckGroups(i));
      if (!one.program.is_acyclic()) {
        return BadInput(fmt::format(
            "class {}: found a cycle of dependencies that contains node {}, expected none", i,
            one.program.source_id(one.program.cycle().front())));
      }
    }
    std::vector<int64_t> all;
    for (const RankClass& one : job_.classes) {
      const std::vector<int64_t> ranks = one.ranks.Ranks();
      all.insert(all.end(), ranks.begin(), ranks.end());
    }
    std::ranges::sort(all);
    const auto twice = std::ranges::adjacent_find(all);
    if (twice != all.end()) {
      return BadInput(fmt::format("found rank {} in two classes, expected it in one", *twice));
    }
    return {};
  }

  Status CheckGroups(size_t at) {
    const RankClass& one = job_.classes[at];
    for (size_t i = 0; i < one.groups.size(); ++i) {
      if (one.groups[i].kind >= job_.group_kinds.size()) {
        return BadInput(fmt::format("class {}: found kind {} of groups, expected 0 to {}", at,
                                    one.groups[i].kind,
                                    static_cast<int64_t>(job_.group_kinds.size()) - 1));
      }
      const GroupKind& kind = job_.group_kinds[one.groups[i].kind];
      if (kind.axes) continue;
      for (const int64_t rank : one.ranks.Ranks()) {
        if (!kind.GroupOf(job_.mesh, rank)) {
          return BadInput(fmt::format("class {}: found no group of kind {} with rank {}", at,
                                      one.groups[i].kind, rank));
        }
      }
    }
    return {};
  }

  tl::unexpected<Error> EventFault(size_t event, const std::string& fault) const {
    return BadInput(fmt::format("communication {}: {}", event, fault));
  }

  Status CheckEvent(size_t index) {
    const CommEvent& event = job_.events[index];
    if (event.route != CommEvent::kNone && event.route >= job_.routes.size()) {
      return EventFault(index, fmt::format("found unknown route {}", event.route));
    }
    if (event.received_after >= job_.events.size()) {
      return EventFault(
          index,
          fmt::format("found that it is received after communication {}, which does not exist",
                      event.received_after));
    }
    std::set<size_t> classes;
    for (const CommPart& part : event.parts) {
      if (part.rank_class >= job_.classes.size() ||
          part.node.index() >= event_of_[part.rank_class].size()) {
        return EventFault(index, fmt::format("found unknown node {} of class {}", part.node.value(),
                                             part.rank_class));
      }
      const Trace& program = job_.classes[part.rank_class].program;
      int64_t& of = event_of_[part.rank_class][part.node.index()];
      if (of >= 0) {
        return EventFault(index, fmt::format("found node {} of class {}, which is part of "
                                             "communication {} already",
                                             program.source_id(part.node), part.rank_class, of));
      }
      of = static_cast<int64_t>(index);
      const NodeKind kind = program.kind(part.node);
      const bool fits = event.is_message ? kind == NodeKind::kSend || kind == NodeKind::kRecv
                                         : kind == NodeKind::kCollective;
      if (!fits) {
        return EventFault(index,
                          fmt::format("found node {} of class {}, a {}, expected {}",
                                      program.source_id(part.node), part.rank_class, Name(kind),
                                      event.is_message ? "a send or recv" : "a collective"));
      }
      if (!event.is_message && !classes.insert(part.rank_class).second) {
        return EventFault(index,
                          fmt::format("found class {} twice, expected it once", part.rank_class));
      }
    }
    return event.is_message ? CheckMessage(index) : CheckCollective(index);
  }

  Status CheckCollective(size_t index) {
    const CommEvent& event = job_.events[index];
    std::vector<size_t> classes;
    for (const CommPart& part : event.parts) {
      const RankClass& one = job_.classes[part.rank_class];
      const StringId name = one.program.comm(part.node)->group;
      const std::optional<size_t> group = GroupOfName(one.program.text(name));
      const size_t kind =
          group && *group < one.groups.size() ? one.groups[*group].kind : CommEvent::kNone;
      if (kind != event.group) {
        return EventFault(index, fmt::format("found node {} of class {} in another group than the "
                                             "communication",
                                             one.program.source_id(part.node), part.rank_class));
      }
      classes.push_back(part.rank_class);
    }
    if (event.group == CommEvent::kNone) return {};
    std::ranges::sort(classes);
    if (!checked_groups_.emplace(event.group, classes).second) return {};
    // All members with a trace must take part.
    const GroupKind& kind = job_.group_kinds[event.group];
    std::set<int64_t> groups;
    for (const size_t one : classes) {
      for (const int64_t rank : job_.classes[one].ranks.Ranks()) {
        groups.insert(*kind.GroupOf(job_.mesh, rank));
      }
    }
    for (const int64_t group : groups) {
      for (const int64_t rank : kind.RanksOf(job_.mesh, group)) {
        const std::optional<size_t> of = job_.ClassOf(rank);
        if (of && !std::ranges::binary_search(classes, *of)) {
          return EventFault(index, fmt::format("found no part of rank {}, which is in group '{}'",
                                               rank, kind.NameOf(group)));
        }
      }
    }
    return {};
  }

  Status CheckMessage(size_t index) {
    const CommEvent& event = job_.events[index];
    if (event.route == CommEvent::kNone) return {};
    const Route& route = job_.routes[event.route];
    std::vector<std::tuple<size_t, bool, size_t>> sides;  // class, sends, index
    for (const CommPart& part : event.parts) {
      const NodeKind kind = job_.classes[part.rank_class].program.kind(part.node);
      sides.emplace_back(part.rank_class, kind == NodeKind::kSend, part.number);
    }
    std::ranges::sort(sides);
    if (!checked_routes_.emplace(event.route, sides).second) return {};
    std::set<std::pair<int64_t, int64_t>> sent, received;
    for (const auto& [one, sends, number] : sides) {
      for (const int64_t rank : job_.classes[one].ranks.Ranks()) {
        const auto peer = sends ? route.ReceiverOf(job_.mesh, rank, number)
                                : route.SenderTo(job_.mesh, rank, number);
        if (!peer) {
          return EventFault(
              index, fmt::format("found no partner of rank {} on route {}", rank, event.route));
        }
        const auto pair = sends ? std::pair(rank, *peer) : std::pair(*peer, rank);
        if (!(sends ? sent : received).insert(pair).second) {
          return EventFault(index, fmt::format("found the message from rank {} to {} twice",
                                               pair.first, pair.second));
        }
      }
    }
    const auto lacks = [&](const auto& here, const auto& there, bool at_receiver) {
      for (const auto& pair : here) {
        const int64_t other = at_receiver ? pair.second : pair.first;
        if (!there.contains(pair) && job_.ClassOf(other)) return std::optional(pair);
      }
      return std::optional<std::pair<int64_t, int64_t>>();
    };
    if (const auto pair = lacks(sent, received, true)) {
      return EventFault(index, fmt::format("rank {} sends to rank {}, which does not receive",
                                           pair->first, pair->second));
    }
    if (const auto pair = lacks(received, sent, false)) {
      return EventFault(index, fmt::format("rank {} receives from rank {}, which does not send",
                                           pair->second, pair->first));
    }
    return {};
  }

  // Every communication must be part of an event, except the host's side of device communication,
  // operations within a communication, and nodes without facts, which carry calls of the host.
  Status CheckNothingLeftOut(size_t at) {
    const Trace& program = job_.classes[at].program;
    bool any_on_device = false;
    for (const auto& [node, comm] : program.comms()) {
      any_on_device = any_on_device || (IsCommunication(program.kind(node)) &&
                                        program.place(node) == Place::kDevice && comm != Comm());
    }
    for (const auto& [node, comm] : program.comms()) {
      if (!IsCommunication(program.kind(node)) || event_of_[at][node.index()] >= 0) continue;
      if (any_on_device && program.place(node) != Place::kDevice) continue;
      if (comm == Comm()) continue;
      NodeId above = program.parent(node);
      while (above && !IsCommunication(program.kind(above))) above = program.parent(above);
      if (above) continue;
      return BadInput(fmt::format("class {}: found node {}, a {}, in no communication", at,
                                  program.source_id(node), Name(program.kind(node))));
    }
    return {};
  }

  // Along parents and dependencies, events must ascend.
  Status CheckOrder(size_t at) {
    const Trace& program = job_.classes[at].program;
    const size_t nodes = program.node_count();
    std::vector<uint32_t> waits(nodes);
    std::vector<std::vector<uint32_t>> dependents(nodes);
    std::vector<uint32_t> ready;
    ForEachNode(program, [&](NodeId node) {
      const auto wait_for = [&](NodeId other) {
        dependents[other.index()].push_back(node.value());
        ++waits[node.index()];
      };
      if (program.parent(node)) wait_for(program.parent(node));
      for (const NodeId dep : program.deps(node)) wait_for(dep);
      if (waits[node.index()] == 0) ready.push_back(node.value());
    });
    // Last communication that each node waits for, itself included.
    std::vector<int64_t> last(nodes, -1);
    while (!ready.empty()) {
      const uint32_t node = ready.back();
      ready.pop_back();
      const int64_t own = event_of_[at][node];
      if (own >= 0) {
        const bool receives = program.kind(NodeId(node)) == NodeKind::kRecv;
        const size_t after = job_.events[static_cast<size_t>(own)].received_after;
        const int64_t when = receives ? std::max(own, static_cast<int64_t>(after)) : own;
        if (last[node] > when || (last[node] == when && !receives)) {
          return BadInput(
              fmt::format("class {}: node {} of communication {} waits for "
                          "communication {}, expected those that come before",
                          at, program.source_id(NodeId(node)), own, last[node]));
        }
        last[node] = when;
      }
      for (const uint32_t next : dependents[node]) {
        last[next] = std::max(last[next], last[node]);
        if (--waits[next] == 0) ready.push_back(next);
      }
    }
    return {};
  }

  const Job& job_;
  std::vector<std::vector<int64_t>> event_of_;  // by class and node; -1: none
  std::set<std::pair<size_t, std::vector<size_t>>> checked_groups_;
  std::set<std::pair<size_t, std::vector<std::tuple<size_t, bool, size_t>>>> checked_routes_;
};

}  // namespace

std::optional<int64_t> GroupKind::GroupOf(const Mesh& mesh, int64_t rank) const {
  if (axes) return mesh.GroupOf(rank, *axes);
  const auto at =
      std::ranges::find_if(listed, [&](const RankSet& ranks) { return ranks.Contains(rank); });
  if (at == listed.end()) return std::nullopt;
  return at - listed.begin();
}

std::vector<int64_t> GroupKind::RanksOf(const Mesh& mesh, int64_t group) const {
  return axes ? mesh.GroupRanks(group, *axes) : listed[static_cast<size_t>(group)].Ranks();
}

std::string GroupKind::NameOf(int64_t group) const {
  if (names.empty()) return std::to_string(first_name + group * name_step);
  return static_cast<size_t>(group) < names.size() ? names[static_cast<size_t>(group)] : "";
}

std::optional<int64_t> Route::ReceiverOf(const Mesh& mesh, int64_t sender, size_t number) const {
  if (!shift.empty()) return mesh.Shift(sender, shift);
  const auto from = std::ranges::lower_bound(pairs, std::pair(sender, INT64_MIN));
  if (number >= static_cast<size_t>(pairs.end() - from)) return std::nullopt;
  const auto& pair = from[static_cast<ptrdiff_t>(number)];
  if (pair.first != sender) return std::nullopt;
  return pair.second;
}

std::optional<int64_t> Route::SenderTo(const Mesh& mesh, int64_t receiver, size_t number) const {
  if (!shift.empty()) {
    std::vector<int64_t> back;
    for (const int64_t offset : shift) back.push_back(-offset);
    return mesh.Shift(receiver, back);
  }
  for (const auto& [sender, to] : pairs) {
    if (to == receiver && number-- == 0) return sender;
  }
  return std::nullopt;
}

std::optional<size_t> Job::ClassOf(int64_t rank) const {
  const auto at =
      std::ranges::find_if(classes, [&](const RankClass& one) { return one.ranks.Contains(rank); });
  if (at == classes.end()) return std::nullopt;
  return static_cast<size_t>(at - classes.begin());
}

int64_t Job::rank_count() const {
  int64_t count = 0;
  for (const RankClass& one : classes) count += one.ranks.size();
  return count;
}

std::optional<size_t> GroupOfName(std::string_view name) {
  if (!name.starts_with('@')) return std::nullopt;
  size_t group = 0;
  const char* end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + 1, end, group);
  if (error != std::errc() || at != end) return std::nullopt;
  return group;
}

std::string NameOfGroup(size_t group) { return "@" + std::to_string(group); }

Status CheckJob(const Job& job) { return JobChecker(job).Run(); }

ClassEvents::ClassEvents(const Job& job) {
  std::vector<std::pair<size_t, EventOfNode>> parts;
  for (const CommEvent& event : job.events) {
    for (const CommPart& part : event.parts) {
      if (part.rank_class >= job.classes.size()) continue;
      parts.push_back({part.rank_class, {.node = part.node, .event = &event, .part = &part}});
    }
  }
  std::ranges::stable_sort(parts, {}, [](const auto& part) { return part.second.node; });
  events_ = Csr<EventOfNode>::Build(
      job.classes.size(), parts, [](const auto& part) { return part.first; },
      [](const auto& part) { return part.second; });
}

Result<Trace> TraceOfRank(const Job& job, int64_t rank, const Limits& limits) {
  return TraceOfRank(job, ClassEvents(job), rank, limits);
}

Result<Trace> TraceOfRank(const Job& job, const ClassEvents& events, int64_t rank,
                          const Limits& limits) {
  const std::optional<size_t> of = job.ClassOf(rank);
  if (!of) {
    return BadInput(fmt::format("found no trace of rank {} in a job with traces of {} rank{}", rank,
                                job.rank_count(), job.rank_count() == 1 ? "" : "s"));
  }
  return TraceOfRank(job, {*of, job.classes[*of].program, events[*of]}, rank, limits);
}

Result<Trace> TraceOfRank(const Job& job, const ClassProgram& of, int64_t rank,
                          const Limits& limits) {
  return RankMaker(job, of, rank, limits).Run();
}

Result<Trace> WithEvents(std::span<const EventOfNode> events, const Trace& program,
                         const Limits& limits) {
  return ChangeEvents(events, program, AddEventFacts, limits);
}

Result<Trace> WithoutEvents(std::span<const EventOfNode> events, const Trace& program,
                            const Limits& limits) {
  return ChangeEvents(events, program, RemoveEventFacts, limits);
}

}  // namespace etude
