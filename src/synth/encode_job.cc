#include "src/synth/encode_job.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "src/analysis/comm_log.h"
#include "src/analysis/comm_match.h"
#include "src/base/ascii.h"
#include "src/base/csr.h"
#include "src/synth/find_mesh.h"
#include "src/trace/trace_copy.h"

namespace etude {
namespace {

constexpr size_t kNoGroup = CommEvent::kNone;

// Sets that grow together.
class UnionFind {
 public:
  explicit UnionFind(size_t count) : parents_(count) {
    std::iota(parents_.begin(), parents_.end(), 0);
  }
  size_t Find(size_t at) {
    while (parents_[at] != at) at = parents_[at] = parents_[parents_[at]];
    return at;
  }
  // The smaller one stands for both.
  void Unite(size_t a, size_t b) {
    a = Find(a);
    b = Find(b);
    parents_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<size_t> parents_;
};

// `name` with "{peer}" for each number that is `peer`.
std::string NameWithoutPeer(std::string_view name, int64_t peer) {
  const std::string number = std::to_string(peer);
  std::string text;
  for (size_t at = 0; at < name.size();) {
    size_t end = at;
    while (end < name.size() && IsDigit(name[end])) ++end;
    if (end == at) {
      text += name[at++];
      continue;
    }
    const std::string_view run = name.substr(at, end - at);
    text += run == number ? kPeerInName : run;
    at = end;
  }
  return text;
}

// A process group as it is, with its members.
struct ActualGroup {
  std::string name;
  std::vector<int64_t> ranks;  // ascending
};

// A communication as it is: all calls that belong together.
struct ActualEvent {
  bool is_message = false;
  bool routed = false;  // of a message: sender and receiver are known
  int64_t sender = 0;
  int64_t receiver = 0;
  std::vector<CallPlace> calls;
};

// Senders and receivers of an event, in both orders.
struct EventPairs {
  std::vector<std::pair<int64_t, int64_t>> by_sender;    // sender, receiver
  std::vector<std::pair<int64_t, int64_t>> by_receiver;  // receiver, sender

  // Of the pairs with `self` in front, how many are before the one with `peer`.
  static size_t Number(const std::vector<std::pair<int64_t, int64_t>>& pairs, int64_t self,
                       int64_t peer) {
    const auto first =
        std::ranges::lower_bound(pairs, self, {}, [](const auto& pair) { return pair.first; });
    const auto own = std::ranges::lower_bound(first, pairs.end(), std::pair(self, peer));
    return static_cast<size_t>(own - first);
  }
};

// What a rank does, put so that ranks which do the same say the same.
struct RankForm {
  int64_t rank = 0;
  const Trace* trace = nullptr;
  Trace program;
  std::vector<size_t> groups;  // by number in the program: ActualGroup
  std::vector<bool> listed;    // likewise
  bool states_rank = false;
  bool peers_in_names = false;
  std::vector<bool> states_self;  // by call
  std::vector<bool> routed;       // likewise
  uint64_t hash = 0;

  bool SameAs(const RankForm& other) const {
    for (const StatInfo& info : StatTable()) {
      if (program.stats()[info.stat] != other.program.stats()[info.stat]) return false;
    }
    return hash == other.hash && listed == other.listed && states_rank == other.states_rank &&
           peers_in_names == other.peers_in_names && states_self == other.states_self &&
           routed == other.routed && program.SameContent(other.program);
  }
};

class JobEncoder {
 public:
  JobEncoder(std::span<const RankOfJob> ranks, const EncodeJobOptions& options)
      : options_(options) {
    for (const RankOfJob& rank : ranks) {
      RankForm form;
      form.rank = rank.rank;
      form.trace = rank.trace;
      forms_.push_back(std::move(form));
    }
    std::ranges::sort(forms_, {}, &RankForm::rank);
  }

  Result<Job> Run() {
    ETUDE_RETURN_IF_ERROR(CheckRanks());
    ETUDE_RETURN_IF_ERROR(MatchCalls());
    ETUDE_RETURN_IF_ERROR(MakeForms());
    ETUDE_RETURN_IF_ERROR(SettleGroups());
    ETUDE_RETURN_IF_ERROR(SettleMesh());
    // Where classes would not tell who communicates with whom, or when, each rank is one.
    std::optional<Result<Job>> job = Build(EqualForms());
    if (!job) {
      std::vector<std::vector<size_t>> single(forms_.size());
      for (size_t i = 0; i < single.size(); ++i) single[i] = {i};
      job = Build(single);
    }
    if (!job) return MakeError(ErrorCode::kInternal, "a job of single ranks was not built");
    if (!*job) return *std::move(job);
    if (Status status = CheckJob(**job); !status) {
      return MakeError(ErrorCode::kInternal, "an encoded job: " + status.error().message);
    }
    return *std::move(job);
  }

 private:
  Status CheckRanks() const {
    for (size_t i = 0; i < forms_.size(); ++i) {
      const RankForm& form = forms_[i];
      if (form.rank < 0 || form.rank >= kMostRanksOfJob) {
        return BadInput(
            fmt::format("found rank {}, expected 0 to {}", form.rank, kMostRanksOfJob - 1));
      }
      if (i > 0 && forms_[i - 1].rank == form.rank) {
        return BadInput(fmt::format("found rank {} twice, expected each rank once", form.rank));
      }
      if (form.trace->is_acyclic()) continue;
      std::string nodes;
      for (const NodeId node :
           form.trace->cycle().first(std::min<size_t>(4, form.trace->cycle().size()))) {
        nodes += fmt::format("{}{}", nodes.empty() ? "" : ", ", form.trace->source_id(node));
      }
      return BadInput(fmt::format("rank {}: nodes {} wait for each other, expected none that do",
                                  form.rank, nodes));
    }
    return {};
  }

  // Which calls belong together, by the one rule that `validate` has, too.
  Status MatchCalls() {
    for (const RankForm& form : forms_) {
      logs_.push_back(ReadCommLog(*form.trace, form.rank));
      for (CommLog::Group& group : logs_.back().groups) {
        const auto known = options_.groups.find(group.name);
        if (group.ranks.empty() && known != options_.groups.end()) group.ranks = known->second;
        std::ranges::sort(group.ranks);
      }
    }
    const CommMatch match = MatchComms(logs_);
    if (match.unmatched != 0) {
      return BadInput(match.first_mismatch +
                      "; expected communications that meet their partners on all ranks");
    }
    for (const auto& meeting : match.meetings) events_.push_back({.calls = meeting});
    MatchMessages();
    for (const CommLog& log : logs_) routed_.emplace_back(log.calls.size());
    for (const ActualEvent& event : events_) {
      for (const CallPlace& place : event.calls) routed_[place.log][place.call] = event.routed;
    }
    return {};
  }

  void MatchMessages() {
    // By sender, receiver and tag: sends without a receive so far.
    std::map<std::tuple<int64_t, int64_t, int64_t>, std::deque<size_t>> sends;
    std::set<int64_t> at_hand;
    for (const RankForm& form : forms_) at_hand.insert(form.rank);
    const auto for_each = [&](NodeKind kind, auto fn) {
      for (size_t i = 0; i < logs_.size(); ++i) {
        for (size_t k = 0; k < logs_[i].calls.size(); ++k) {
          const CommCall& call = logs_[i].calls[k];
          if (call.kind == kind) fn(CallPlace{i, k}, call, logs_[i].rank);
        }
      }
    };
    for_each(NodeKind::kSend, [&](CallPlace place, const CommCall& call, int64_t rank) {
      ActualEvent event{.is_message = true, .sender = rank, .calls = {place}};
      if (call.peer) {
        event.receiver = *call.peer;
        event.routed = !at_hand.contains(*call.peer);  // as long as nobody receives it
        sends[{rank, *call.peer, call.tag.value_or(0)}].push_back(events_.size());
      }
      events_.push_back(std::move(event));
    });
    for_each(NodeKind::kRecv, [&](CallPlace place, const CommCall& call, int64_t rank) {
      if (call.peer) {
        std::deque<size_t>& waiting = sends[{*call.peer, rank, call.tag.value_or(0)}];
        if (!waiting.empty()) {
          events_[waiting.front()].calls.push_back(place);
          events_[waiting.front()].routed = true;
          waiting.pop_front();
          return;
        }
      }
      events_.push_back({.is_message = true,
                         .routed = call.peer && !at_hand.contains(*call.peer),
                         .sender = call.peer.value_or(0),
                         .receiver = rank,
                         .calls = {place}});
    });
  }

  // The group of this name of a rank's.
  size_t GroupOf(size_t form, StringId name) {
    const Trace& trace = *forms_[form].trace;
    std::string text(trace.text(name));
    std::vector<int64_t> ranks;
    for (const ProcessGroup& group : trace.process_groups()) {
      if (group.name != name) continue;
      const auto listed = trace.ints(group.ranks);
      ranks.assign(listed.begin(), listed.end());
    }
    const auto known = options_.groups.find(text);
    if (ranks.empty() && known != options_.groups.end()) ranks = known->second;
    // Without a list of members they are those who communicate in it.
    if (ranks.empty() && std::ranges::count(logs_[form].groups, text, &CommLog::Group::name) == 0) {
      ranks = {forms_[form].rank};
    }
    std::ranges::sort(ranks);
    const auto [at, added] = group_ids_.emplace(std::pair(text, ranks), groups_.size());
    if (added) {
      groups_.push_back({.name = std::move(text), .ranks = ranks});
      users_.emplace_back();
    }
    users_[at->second].insert(forms_[form].rank);
    return at->second;
  }

  // A number in a name may be the partner's, or any other: the way that makes more ranks equal.
  Status MakeForms() {
    for (size_t i = 0; i < forms_.size(); ++i) ETUDE_RETURN_IF_ERROR(MakeForm(i, false));
    if (std::ranges::none_of(events_, &ActualEvent::routed)) return {};
    const size_t classes = EqualForms().size();
    if (classes == 1) return {};
    std::vector<RankForm> others;
    for (const RankForm& form : forms_) {
      RankForm& other = others.emplace_back();
      other.rank = form.rank;
      other.trace = form.trace;
    }
    std::swap(forms_, others);
    for (size_t i = 0; i < forms_.size(); ++i) ETUDE_RETURN_IF_ERROR(MakeForm(i, true));
    if (EqualForms().size() >= classes) std::swap(forms_, others);
    return {};
  }

  Status MakeForm(size_t at, bool peers_in_names) {
    RankForm& form = forms_[at];
    const Trace& trace = *form.trace;
    std::map<std::string, size_t, std::less<>> numbers;  // of groups by name
    const auto number = [&](StringId name) {
      if (name && numbers.emplace(trace.text(name), form.groups.size()).second) {
        form.groups.push_back(GroupOf(at, name));
      }
    };
    for (const auto& [node, comm] : trace.comms()) number(comm.group);
    for (const ProcessGroup& group : trace.process_groups()) number(group.name);
    form.listed.resize(form.groups.size());

    const std::vector<CommCall>& calls = logs_[at].calls;
    form.states_self.resize(calls.size());
    form.routed = routed_[at];
    std::unordered_map<NodeId, size_t> call_of;
    for (size_t i = 0; i < calls.size(); ++i) call_of.emplace(calls[i].row, i);
    form.peers_in_names = peers_in_names && std::ranges::none_of(calls, [&](const CommCall& call) {
                            return trace.name(call.row).find(kPeerInName) != std::string_view::npos;
                          });
    bool any_name = false;

    TraceBuilder builder(options_.limits);
    TraceChange change;
    change.node = [&](NodeId node, NodeRow& row, std::optional<Comm>& comm) {
      if (!comm) return;
      if (comm->group) {
        comm->group = builder.Intern(NameOfGroup(numbers.find(builder.text(comm->group))->second));
      }
      const auto call = call_of.find(node);
      if (call == call_of.end() || row.kind == NodeKind::kCollective) return;
      const bool sends = row.kind == NodeKind::kSend;
      std::optional<int64_t>& self = sends ? comm->src : comm->dst;
      std::optional<int64_t>& peer = sends ? comm->dst : comm->src;
      if (self == form.rank) {
        form.states_self[call->second] = true;
        self.reset();
      }
      if (!form.routed[call->second]) return;
      if (form.peers_in_names) {
        const std::string name = NameWithoutPeer(builder.text(row.name), *peer);
        any_name = any_name || name != builder.text(row.name);
        if (row.name) row.name = builder.Intern(name);
      }
      peer.reset();
    };
    change.group = [&](ProcessGroup& group) {
      if (!group.name) return;
      const size_t is = numbers.find(builder.text(group.name))->second;
      group.name = builder.Intern(NameOfGroup(is));
      if (!group.ranks || builder.ints(group.ranks).empty()) return;
      form.listed[is] =
          std::ranges::equal(builder.ints(group.ranks), groups_[form.groups[is]].ranks);
      if (form.listed[is]) group.ranks = IntListId::None();
    };
    change.info = [&](TraceInfo& info) {
      form.states_rank = info.rank == form.rank;
      if (form.states_rank) info.rank.reset();
      RankFacts facts{.time = std::exchange(info.time, ""),
                      .pid = std::exchange(info.pid, std::nullopt),
                      .start_ts = std::exchange(info.start_ts, std::nullopt),
                      .finish_ts = std::exchange(info.finish_ts, std::nullopt)};
      if (facts != RankFacts()) facts_.emplace(form.rank, std::move(facts));
    };
    ETUDE_ASSIGN_OR_RETURN(const Trace changed, CopyTrace(trace, builder, change));
    form.peers_in_names = any_name;
    // Once more, so that the tables have nothing of the names that are gone.
    TraceBuilder again(options_.limits);
    ETUDE_ASSIGN_OR_RETURN(form.program, CopyTrace(changed, again));
    form.hash = form.program.ContentHash();
    return {};
  }

  Status SettleGroups() {
    for (size_t i = 0; i < groups_.size(); ++i) {
      std::vector<int64_t>& ranks = groups_[i].ranks;
      if (ranks.empty()) {
        ranks.assign(users_[i].begin(), users_[i].end());
      }
      ETUDE_RETURN_IF_ERROR(CheckNumber(ranks.front(), groups_[i].name));
      ETUDE_RETURN_IF_ERROR(CheckNumber(ranks.back(), groups_[i].name));
      const auto twice = std::ranges::adjacent_find(ranks);
      if (twice != ranks.end()) {
        return BadInput(fmt::format("group '{}': found rank {} twice, expected it once",
                                    groups_[i].name, *twice));
      }
    }
    return {};
  }

  static Status CheckNumber(int64_t rank, const std::string& group) {
    if (rank >= 0 && rank < kMostRanksOfJob) return {};
    return BadInput(fmt::format("group '{}': found rank {}, expected 0 to {}", group, rank,
                                kMostRanksOfJob - 1));
  }

  Status SettleMesh() {
    int64_t world = 1;
    for (const RankForm& form : forms_) {
      world = std::max({world, form.rank + 1, form.trace->info().world_size.value_or(0)});
    }
    for (const ActualGroup& group : groups_) world = std::max(world, group.ranks.back() + 1);
    for (const ActualEvent& event : events_) {
      if (!event.routed) continue;
      for (const int64_t rank : {event.sender, event.receiver}) {
        if (rank < 0 || rank >= kMostRanksOfJob) {
          return BadInput(fmt::format("rank {}: found a message with rank {}, expected 0 to {}",
                                      logs_[event.calls.front().log].rank, rank,
                                      kMostRanksOfJob - 1));
        }
        world = std::max(world, rank + 1);
      }
    }
    if (world > kMostRanksOfJob) {
      return BadInput(
          fmt::format("found a job of {} ranks, expected {} at most", world, kMostRanksOfJob));
    }
    if (options_.mesh) {
      if (options_.mesh->size() < world) {
        return BadInput(fmt::format("found rank {}, expected ranks of a mesh of {}", world - 1,
                                    options_.mesh->size()));
      }
      mesh_ = *options_.mesh;
      return {};
    }
    std::vector<std::vector<int64_t>> together;
    for (const ActualGroup& group : groups_) together.push_back(group.ranks);
    std::map<int64_t, size_t> index;
    std::vector<int64_t> ranks;
    const auto at = [&](int64_t rank) {
      const auto [found, added] = index.emplace(rank, ranks.size());
      if (added) ranks.push_back(rank);
      return found->second;
    };
    std::vector<std::pair<size_t, size_t>> pairs;
    for (const ActualEvent& event : events_) {
      if (event.routed) pairs.emplace_back(at(event.sender), at(event.receiver));
    }
    UnionFind talk(ranks.size());
    for (const auto& [a, b] : pairs) talk.Unite(a, b);
    std::map<size_t, std::vector<int64_t>> talkers;
    for (const auto& [rank, i] : index) talkers[talk.Find(i)].push_back(rank);
    for (auto& [root, members] : talkers) together.push_back(std::move(members));
    mesh_ = FindMesh(world, together);
    return {};
  }

  // Ranks of equal forms, by first rank.
  std::vector<std::vector<size_t>> EqualForms() const {
    std::vector<std::vector<size_t>> classes;
    std::unordered_multimap<uint64_t, size_t> by_hash;
    for (size_t i = 0; i < forms_.size(); ++i) {
      const auto [begin, end] = by_hash.equal_range(forms_[i].hash);
      const auto same = std::find_if(begin, end, [&](const auto& entry) {
        return forms_[classes[entry.second].front()].SameAs(forms_[i]);
      });
      if (same != end) {
        classes[same->second].push_back(i);
        continue;
      }
      by_hash.emplace(forms_[i].hash, classes.size());
      classes.push_back({i});
    }
    return classes;
  }

  struct Draft {
    const std::vector<std::vector<size_t>>* classes = nullptr;  // forms, by class
    std::vector<size_t> class_of;                               // by form
    std::vector<size_t> first_call;   // by class: number of its first call among those of all
    std::vector<size_t> first_group;  // likewise
    std::vector<size_t> event_of;     // by call: event of `job`
    Job job;
  };

  const RankForm& FormOf(const Draft& draft, size_t rank_class) const {
    return forms_[(*draft.classes)[rank_class].front()];
  }
  const CommLog& LogOf(const Draft& draft, size_t rank_class) const {
    return logs_[(*draft.classes)[rank_class].front()];
  }

  // nullopt: the ranks of these classes cannot share a program.
  std::optional<Result<Job>> Build(const std::vector<std::vector<size_t>>& classes) {
    Draft draft;
    draft.classes = &classes;
    draft.class_of.resize(forms_.size());
    size_t calls = 0;
    size_t groups = 0;
    for (size_t i = 0; i < classes.size(); ++i) {
      draft.first_call.push_back(calls);
      draft.first_group.push_back(groups);
      calls += LogOf(draft, i).calls.size();
      groups += FormOf(draft, i).groups.size();
      for (const size_t form : classes[i]) draft.class_of[form] = i;
    }
    draft.first_call.push_back(calls);
    draft.first_group.push_back(groups);
    draft.job.mesh = mesh_;
    draft.job.facts = facts_;
    AddClasses(draft);
    if (!AddGroupKinds(draft) || !AddEvents(draft)) return std::nullopt;
    const std::vector<std::pair<uint32_t, uint32_t>> cycle = OrderEvents(draft);
    if (!cycle.empty()) {
      if (classes.size() < forms_.size()) return std::nullopt;
      return WaitingForever(draft, cycle);
    }
    return Finish(draft);
  }

  void AddClasses(Draft& draft) const {
    for (const std::vector<size_t>& members : *draft.classes) {
      const RankForm& form = forms_[members.front()];
      RankClass one;
      std::vector<int64_t> ranks;
      for (const size_t member : members) ranks.push_back(forms_[member].rank);
      one.ranks = RankSet::Of(ranks);
      for (const bool listed : form.listed) one.groups.push_back({.kind = 0, .listed = listed});
      one.states_rank = form.states_rank;
      one.peers_in_names = form.peers_in_names;
      draft.job.classes.push_back(std::move(one));
    }
  }

  // Groups that stand in one place of a program are of one kind.
  bool AddGroupKinds(Draft& draft) const {
    const size_t places = draft.first_group.back();
    UnionFind same(places);
    std::vector<size_t> place_of(groups_.size(), kNoGroup);
    for (size_t i = 0; i < forms_.size(); ++i) {
      for (size_t k = 0; k < forms_[i].groups.size(); ++k) {
        const size_t place = draft.first_group[draft.class_of[i]] + k;
        size_t& of = place_of[forms_[i].groups[k]];
        if (of == kNoGroup) {
          of = place;
        } else {
          same.Unite(of, place);
        }
      }
    }
    std::map<size_t, std::vector<size_t>> groups_at;  // by place that stands for all
    for (size_t i = 0; i < groups_.size(); ++i) groups_at[same.Find(place_of[i])].push_back(i);
    std::map<size_t, size_t> kind_at;
    for (const auto& [place, members] : groups_at) {
      std::vector<NamedGroup> named;
      std::set<int64_t> ranks;
      for (const size_t group : members) {
        named.push_back({.name = groups_[group].name, .ranks = groups_[group].ranks});
        for (const int64_t rank : groups_[group].ranks) {
          if (!ranks.insert(rank).second) return false;  // the rank does not tell its group
        }
      }
      kind_at[place] = AddGroupKind(draft.job, std::move(named));
    }
    for (size_t i = 0; i < draft.job.classes.size(); ++i) {
      for (size_t k = 0; k < draft.job.classes[i].groups.size(); ++k) {
        draft.job.classes[i].groups[k].kind = kind_at.at(same.Find(draft.first_group[i] + k));
      }
    }
    return true;
  }

  // Communications of which classes share a call are one.
  bool AddEvents(Draft& draft) const {
    const size_t calls = draft.first_call.back();
    const auto index = [&](const CallPlace& place) {
      return draft.first_call[draft.class_of[place.log]] + place.call;
    };
    UnionFind same(calls);
    for (const ActualEvent& event : events_) {
      for (const CallPlace& place : event.calls)
        same.Unite(index(event.calls.front()), index(place));
    }
    std::map<size_t, std::vector<const ActualEvent*>> events_at;
    for (const ActualEvent& event : events_) {
      events_at[same.Find(index(event.calls.front()))].push_back(&event);
    }
    draft.event_of.assign(calls, CommEvent::kNone);
    std::map<std::pair<std::vector<int64_t>, std::vector<std::pair<int64_t, int64_t>>>, size_t>
        routes;
    for (const auto& [root, actual] : events_at) {
      CommEvent event;
      event.is_message = actual.front()->is_message;
      EventPairs pairs;
      if (actual.front()->routed) {
        for (const ActualEvent* one : actual) {
          pairs.by_sender.emplace_back(one->sender, one->receiver);
          pairs.by_receiver.emplace_back(one->receiver, one->sender);
        }
        std::ranges::sort(pairs.by_sender);
        std::ranges::sort(pairs.by_receiver);
        if (std::ranges::adjacent_find(pairs.by_sender) != pairs.by_sender.end()) return false;
      }
      for (const ActualEvent* one : actual) {
        for (const CallPlace& place : one->calls) {
          if (!AddPart(draft, *one, pairs, place, event)) return false;
        }
      }
      if (!event.is_message) {
        const Trace& program = FormOf(draft, event.parts.front().rank_class).program;
        const auto group = GroupOfName(program.text(program.comm(event.parts.front().node)->group));
        if (group)
          event.group = draft.job.classes[event.parts.front().rank_class].groups[*group].kind;
      } else if (!pairs.by_sender.empty()) {
        Route route = MakeRoute(mesh_, std::move(pairs.by_sender));
        const auto [at, added] =
            routes.emplace(std::pair(route.shift, route.pairs), draft.job.routes.size());
        if (added) draft.job.routes.push_back(std::move(route));
        event.route = at->second;
      }
      for (const CommPart& part : event.parts) {
        const std::vector<CommCall>& log = LogOf(draft, part.rank_class).calls;
        const auto call = std::ranges::find(log, part.node, &CommCall::row);
        draft
            .event_of[draft.first_call[part.rank_class] + static_cast<size_t>(call - log.begin())] =
            draft.job.events.size();
      }
      ShareFacts(draft, event);
      draft.job.events.push_back(std::move(event));
    }
    return true;
  }

  // Adds what the class of `place` does in `event`, unless it is there. False if it is there in
  // another way.
  bool AddPart(const Draft& draft, const ActualEvent& actual, const EventPairs& pairs,
               const CallPlace& place, CommEvent& event) const {
    const CommCall& call = logs_[place.log].calls[place.call];
    CommPart part{.rank_class = draft.class_of[place.log],
                  .node = call.row,
                  .number = 0,
                  .states_self = forms_[place.log].states_self[place.call]};
    if (actual.routed) {
      part.number = call.kind == NodeKind::kSend
                        ? EventPairs::Number(pairs.by_sender, actual.sender, actual.receiver)
                        : EventPairs::Number(pairs.by_receiver, actual.receiver, actual.sender);
    }
    const auto known = std::ranges::find_if(event.parts, [&](const CommPart& other) {
      return other.rank_class == part.rank_class && other.node == part.node;
    });
    if (known != event.parts.end()) return known->number == part.number;
    const bool again = !event.is_message &&
                       std::ranges::count(event.parts, part.rank_class, &CommPart::rank_class) != 0;
    if (again) return false;
    event.parts.push_back(part);
    return true;
  }

  // What all parts say, the event says for them.
  void ShareFacts(const Draft& draft, CommEvent& event) const {
    const auto comm = [&](const CommPart& part) -> const Comm& {
      return *FormOf(draft, part.rank_class).program.comm(part.node);
    };
    const Comm& first = comm(event.parts.front());
    const auto shared = [&](auto member) {
      return std::ranges::all_of(
          event.parts, [&](const CommPart& part) { return comm(part).*member == first.*member; });
    };
    event.type = event.is_message ? CollectiveType::kUnknown : first.type;
    // Sizes that are none stay with the programs.
    const bool is_size = first.bytes && first.bytes->count >= 0;
    if (is_size && shared(&Comm::bytes)) event.bytes = first.bytes;
    if (shared(&Comm::root)) event.root = first.root;
    if (shared(&Comm::tag)) event.tag = first.tag;
  }

  // The graph in which communications are ordered. Vertices: events, where they are sent if they
  // are messages; where those are received; then the other nodes of all classes.
  struct WaitGraph {
    std::vector<std::pair<uint32_t, uint32_t>> edges;  // from, to
    uint32_t vertices = 0;
    std::vector<size_t> positions;  // by event: where it stands in the first program that has it
  };

  WaitGraph MakeWaitGraph(const Draft& draft) const {
    const size_t events = draft.job.events.size();
    WaitGraph graph;
    graph.positions.assign(events, SIZE_MAX);
    graph.vertices = static_cast<uint32_t>(2 * events);
    for (size_t i = 0; i < events; ++i) {
      graph.edges.emplace_back(static_cast<uint32_t>(i), static_cast<uint32_t>(events + i));
    }
    for (size_t c = 0; c < draft.job.classes.size(); ++c) {
      const Trace& program = FormOf(draft, c).program;
      const std::vector<CommCall>& calls = LogOf(draft, c).calls;
      // Without times the order of issue is not known.
      const bool timed = std::ranges::all_of(
          calls, [&](const CommCall& call) { return program.start(call.row).has_value(); });
      std::vector<uint32_t> vertex(program.node_count(), UINT32_MAX);
      std::map<StringId, uint32_t> last;  // collective, by group
      for (size_t i = 0; i < calls.size(); ++i) {
        const size_t event = draft.event_of[draft.first_call[c] + i];
        const bool receives = calls[i].kind == NodeKind::kRecv;
        const auto is = static_cast<uint32_t>(receives ? events + event : event);
        vertex[calls[i].row.index()] = is;
        graph.positions[event] = std::min(graph.positions[event], i);
        if (!timed || calls[i].kind != NodeKind::kCollective) continue;
        const auto [before, first] = last.emplace(program.comm(calls[i].row)->group, is);
        if (!first) graph.edges.emplace_back(std::exchange(before->second, is), is);
      }
      for (uint32_t& of : vertex) {
        if (of == UINT32_MAX) of = graph.vertices++;
      }
      ForEachNode(program, [&](NodeId node) {
        const auto wait_for = [&](NodeId other) {
          graph.edges.emplace_back(vertex[other.index()], vertex[node.index()]);
        };
        if (program.parent(node)) wait_for(program.parent(node));
        for (const NodeId dep : program.deps(node)) wait_for(dep);
      });
    }
    return graph;
  }

  // Sorts the events into an order in which they can happen: after what their nodes wait for, and
  // after the collectives before them in their group. Returns a cycle of classes and calls if there
  // is no such order.
  std::vector<std::pair<uint32_t, uint32_t>> OrderEvents(Draft& draft) const {
    Job& job = draft.job;
    const size_t events = job.events.size();
    const WaitGraph graph = MakeWaitGraph(draft);
    const auto next = Csr<uint32_t>::Build(
        graph.vertices, graph.edges, [](const auto& edge) { return edge.first; },
        [](const auto& edge) { return edge.second; });
    std::vector<uint32_t> waits(graph.vertices);
    for (const auto& [from, to] : graph.edges) ++waits[to];
    // Of the events that can happen, the one that stands first in a program.
    using Ready = std::pair<size_t, uint32_t>;
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    std::vector<uint32_t> free;
    const auto release = [&](uint32_t at) {
      if (at < events) {
        ready.emplace(graph.positions[at], at);
      } else {
        free.push_back(at);
      }
    };
    for (uint32_t i = 0; i < graph.vertices; ++i) {
      if (waits[i] == 0) release(i);
    }
    std::vector<size_t> order;
    while (!free.empty() || !ready.empty()) {
      uint32_t at = 0;
      if (!free.empty()) {
        at = free.back();
        free.pop_back();
        if (at < 2 * events) job.events[at - events].received_after = order.size() - 1;
      } else {
        at = ready.top().second;
        ready.pop();
        order.push_back(at);
      }
      for (const uint32_t to : next[at]) {
        if (--waits[to] == 0) release(to);
      }
    }
    if (std::ranges::any_of(waits, [](uint32_t count) { return count != 0; })) {
      return FindCycle(draft, graph.edges, waits);
    }
    std::vector<CommEvent> sorted;
    for (const size_t at : order) {
      CommEvent& event = sorted.emplace_back(std::move(job.events[at]));
      if (!event.is_message || event.received_after == sorted.size() - 1) event.received_after = 0;
    }
    job.events = std::move(sorted);
    return {};
  }

  // Communications that wait for each other, of vertices that still wait: class and call each.
  std::vector<std::pair<uint32_t, uint32_t>> FindCycle(
      const Draft& draft, const std::vector<std::pair<uint32_t, uint32_t>>& edges,
      const std::vector<uint32_t>& waits) const {
    const auto before = Csr<uint32_t>::Build(
        waits.size(), edges, [](const auto& edge) { return edge.second; },
        [](const auto& edge) { return edge.first; });
    auto at = static_cast<uint32_t>(
        std::ranges::find_if(waits, [](uint32_t count) { return count != 0; }) - waits.begin());
    std::vector<uint32_t> walk;
    std::vector<size_t> step(waits.size(), SIZE_MAX);
    while (step[at] == SIZE_MAX) {
      step[at] = walk.size();
      walk.push_back(at);
      at = *std::ranges::find_if(before[at], [&](uint32_t from) { return waits[from] != 0; });
    }
    std::vector<std::pair<uint32_t, uint32_t>> cycle;
    const size_t events = draft.job.events.size();
    for (size_t i = step[at]; i < walk.size(); ++i) {
      if (walk[i] >= 2 * events) continue;
      const bool receives = walk[i] >= events;
      for (size_t c = 0; c < draft.job.classes.size(); ++c) {
        const std::vector<CommCall>& calls = LogOf(draft, c).calls;
        for (size_t k = 0; k < calls.size(); ++k) {
          if (draft.event_of[draft.first_call[c] + k] == walk[i] % events &&
              (calls[k].kind == NodeKind::kRecv) == receives) {
            cycle.emplace_back(static_cast<uint32_t>(c), static_cast<uint32_t>(k));
            c = draft.job.classes.size() - 1;
            break;
          }
        }
      }
    }
    return cycle;
  }

  Result<Job> WaitingForever(const Draft& draft,
                             const std::vector<std::pair<uint32_t, uint32_t>>& cycle) const {
    constexpr size_t kShown = 4;
    std::string text;
    for (size_t i = 0; i < std::min(cycle.size(), kShown); ++i) {
      const auto [of, call] = cycle[i];
      const CommLog& log = LogOf(draft, of);
      text += fmt::format("{}rank {} in {} (node {})", i == 0 ? "" : ", ", log.rank,
                          log.calls[call].Text(log), log.calls[call].node);
    }
    return BadInput(
        fmt::format("found {} communications that wait for each other: {}{}; expected "
                    "an order in which all can happen",
                    cycle.size(), text, cycle.size() > kShown ? " …" : ""));
  }

  Result<Job> Finish(Draft& draft) const {
    for (size_t i = 0; i < draft.job.classes.size(); ++i) {
      ETUDE_ASSIGN_OR_RETURN(
          draft.job.classes[i].program,
          WithoutEvents(draft.job, i, FormOf(draft, i).program, options_.limits));
    }
    return std::move(draft.job);
  }

  const EncodeJobOptions& options_;
  std::vector<RankForm> forms_;            // by rank
  std::vector<CommLog> logs_;              // likewise
  std::vector<std::vector<bool>> routed_;  // likewise, by call: ActualEvent::routed
  std::vector<ActualEvent> events_;
  std::vector<ActualGroup> groups_;
  std::vector<std::set<int64_t>> users_;  // by group
  std::map<std::pair<std::string, std::vector<int64_t>>, size_t> group_ids_;
  std::map<int64_t, RankFacts> facts_;
  Mesh mesh_;
};

}  // namespace

Result<Job> EncodeJob(std::span<const RankOfJob> ranks, const EncodeJobOptions& options) {
  return JobEncoder(ranks, options).Run();
}

}  // namespace etude
