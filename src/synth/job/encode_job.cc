#include "src/synth/job/encode_job.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "src/run/calls/comm_log.h"
#include "src/synth/job/event_order.h"
#include "src/synth/job/find_mesh.h"
#include "src/synth/job/rank_forms.h"

namespace etude {
namespace {

constexpr size_t kNoGroup = CommEvent::kNone;

// Disjoint sets that can be merged.
class UnionFind {
 public:
  explicit UnionFind(size_t count) : parents_(count) {
    std::iota(parents_.begin(), parents_.end(), 0);
  }
  size_t Find(size_t at) {
    while (parents_[at] != at) at = parents_[at] = parents_[parents_[at]];
    return at;
  }
  // The smaller one represents both.
  void Unite(size_t a, size_t b) {
    a = Find(a);
    b = Find(b);
    parents_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<size_t> parents_;
};

// Senders and receivers of an event, in both orders.
struct EventPairs {
  std::vector<std::pair<int64_t, int64_t>> by_sender;    // sender, receiver
  std::vector<std::pair<int64_t, int64_t>> by_receiver;  // receiver, sender

  // Returns the number of pairs with `self` first that precede the one with `peer`.
  static size_t Number(const std::vector<std::pair<int64_t, int64_t>>& pairs, int64_t self,
                       int64_t peer) {
    const auto first =
        std::ranges::lower_bound(pairs, self, {}, [](const auto& pair) { return pair.first; });
    const auto own = std::ranges::lower_bound(first, pairs.end(), std::pair(self, peer));
    return static_cast<size_t>(own - first);
  }
};

class JobEncoder {
 public:
  JobEncoder(RankForms ranks, const EncodeJobOptions& options)
      : ranks_(std::move(ranks)), options_(options) {}

  Result<Job> Run() {
    ETUDE_RETURN_IF_ERROR(SettleMesh());
    // If classes would not determine who communicates with whom, or when, each rank is a class.
    std::optional<Result<Job>> job = Build(EqualForms(ranks_.forms));
    if (!job) {
      std::vector<std::vector<size_t>> single(ranks_.forms.size());
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
  Status SettleMesh() {
    int64_t world = 1;
    for (const RankForm& form : ranks_.forms) {
      world = std::max({world, form.rank + 1, form.trace->info().world_size.value_or(0)});
    }
    for (const ActualGroup& group : ranks_.groups) world = std::max(world, group.ranks.back() + 1);
    for (const ActualEvent& event : ranks_.events) {
      if (!event.routed) continue;
      for (const int64_t rank : {event.sender, event.receiver}) {
        if (rank < 0 || rank >= kMostRanksOfJob) {
          return BadInput(fmt::format("rank {}: found a message with rank {}, expected 0 to {}",
                                      ranks_.logs[event.calls.front().log].rank, rank,
                                      kMostRanksOfJob - 1));
        }
        world = std::max(world, rank + 1);
      }
    }
    if (world > kMostRanksOfJob) {
      return BadInput(
          fmt::format("found a job of {} ranks, expected at most {}", world, kMostRanksOfJob));
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
    for (const ActualGroup& group : ranks_.groups) together.push_back(group.ranks);
    std::map<int64_t, size_t> index;
    std::vector<int64_t> ranks;
    const auto at = [&](int64_t rank) {
      const auto [found, added] = index.emplace(rank, ranks.size());
      if (added) ranks.push_back(rank);
      return found->second;
    };
    std::vector<std::pair<size_t, size_t>> pairs;
    for (const ActualEvent& event : ranks_.events) {
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

  struct Draft {
    const std::vector<std::vector<size_t>>* classes = nullptr;  // forms, by class
    std::vector<size_t> class_of;                               // by form
    std::vector<size_t> first_call;   // by class: number of its first call among all calls
    std::vector<size_t> first_group;  // by class: number of its first group among all groups
    std::vector<size_t> event_of;     // by call: event of `job`
    Job job;
  };

  const RankForm& FormOf(const Draft& draft, size_t rank_class) const {
    return ranks_.forms[(*draft.classes)[rank_class].front()];
  }
  const CommLog& LogOf(const Draft& draft, size_t rank_class) const {
    return ranks_.logs[(*draft.classes)[rank_class].front()];
  }

  // Returns nullopt if the ranks of these classes cannot share a program.
  std::optional<Result<Job>> Build(const std::vector<std::vector<size_t>>& classes) {
    Draft draft;
    draft.classes = &classes;
    draft.class_of.resize(ranks_.forms.size());
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
    draft.job.facts = ranks_.facts;
    AddClasses(draft);
    if (!AddGroupKinds(draft) || !AddEvents(draft)) return std::nullopt;
    std::vector<ClassCalls> class_calls;
    for (size_t i = 0; i < classes.size(); ++i) {
      const std::vector<CommCall>& own = LogOf(draft, i).calls;
      class_calls.push_back(
          {.program = &FormOf(draft, i).program,
           .calls = &own,
           .event_of = std::span(draft.event_of).subspan(draft.first_call[i], own.size())});
    }
    const std::vector<ClassCall> cycle = OrderEvents(class_calls, draft.job.events);
    if (!cycle.empty()) {
      if (classes.size() < ranks_.forms.size()) return std::nullopt;
      return WaitingForever(draft, cycle);
    }
    return Finish(draft);
  }

  void AddClasses(Draft& draft) const {
    for (const std::vector<size_t>& members : *draft.classes) {
      const RankForm& form = ranks_.forms[members.front()];
      RankClass one;
      std::vector<int64_t> ranks;
      for (const size_t member : members) ranks.push_back(ranks_.forms[member].rank);
      one.ranks = RankSet::Of(ranks);
      for (const bool listed : form.listed) one.groups.push_back({.kind = 0, .listed = listed});
      one.states_rank = form.states_rank;
      one.peers_in_names = form.peers_in_names;
      draft.job.classes.push_back(std::move(one));
    }
  }

  // Groups at one place of a program are of one kind.
  bool AddGroupKinds(Draft& draft) const {
    const size_t places = draft.first_group.back();
    UnionFind same(places);
    std::vector<size_t> place_of(ranks_.groups.size(), kNoGroup);
    for (size_t i = 0; i < ranks_.forms.size(); ++i) {
      for (size_t k = 0; k < ranks_.forms[i].groups.size(); ++k) {
        const size_t place = draft.first_group[draft.class_of[i]] + k;
        size_t& of = place_of[ranks_.forms[i].groups[k]];
        if (of == kNoGroup) {
          of = place;
        } else {
          same.Unite(of, place);
        }
      }
    }
    std::map<size_t, std::vector<size_t>> groups_at;  // by representative place
    for (size_t i = 0; i < ranks_.groups.size(); ++i)
      groups_at[same.Find(place_of[i])].push_back(i);
    std::map<size_t, size_t> kind_at;
    for (const auto& [place, members] : groups_at) {
      std::vector<NamedGroup> named;
      std::set<int64_t> ranks;
      // Equal forms, and forms that share a group, agree on it.
      const bool callers_only = !ranks_.groups[members.front()].known;
      for (const size_t group : members) {
        named.push_back({.name = ranks_.groups[group].name, .ranks = ranks_.groups[group].ranks});
        for (const int64_t rank : ranks_.groups[group].ranks) {
          if (!ranks.insert(rank).second) return false;  // the rank does not determine its group
        }
      }
      kind_at[place] = AddGroupKind(draft.job, std::move(named), callers_only);
    }
    for (size_t i = 0; i < draft.job.classes.size(); ++i) {
      for (size_t k = 0; k < draft.job.classes[i].groups.size(); ++k) {
        draft.job.classes[i].groups[k].kind = kind_at.at(same.Find(draft.first_group[i] + k));
      }
    }
    return true;
  }

  // Communications of classes that share a call are one event.
  bool AddEvents(Draft& draft) const {
    const size_t calls = draft.first_call.back();
    const auto index = [&](const CallPlace& place) {
      return draft.first_call[draft.class_of[place.log]] + place.call;
    };
    UnionFind same(calls);
    for (const ActualEvent& event : ranks_.events) {
      for (const CallPlace& place : event.calls)
        same.Unite(index(event.calls.front()), index(place));
    }
    std::map<size_t, std::vector<const ActualEvent*>> events_at;
    for (const ActualEvent& event : ranks_.events) {
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
          draft.event_of[index(place)] = draft.job.events.size();
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
      ShareFacts(draft, event);
      draft.job.events.push_back(std::move(event));
    }
    return true;
  }

  // Adds the part of the class of `place` in `event`, unless it exists. Returns false if it exists
  // with other facts.
  bool AddPart(const Draft& draft, const ActualEvent& actual, const EventPairs& pairs,
               const CallPlace& place, CommEvent& event) const {
    const CommCall& call = ranks_.logs[place.log].calls[place.call];
    CommPart part{.rank_class = draft.class_of[place.log],
                  .node = call.facts,
                  .number = 0,
                  .states_self = ranks_.forms[place.log].states_self[place.call]};
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

  // Moves facts common to all parts to the event.
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
    // Invalid sizes stay in the programs.
    const bool is_size = first.bytes && first.bytes->count >= 0;
    if (is_size && shared(&Comm::bytes)) event.bytes = first.bytes;
    if (shared(&Comm::root)) event.root = first.root;
    if (shared(&Comm::tag)) event.tag = first.tag;
  }

  Result<Job> WaitingForever(const Draft& draft, const std::vector<ClassCall>& cycle) const {
    constexpr size_t kShown = 4;
    std::string text;
    for (size_t i = 0; i < std::min(cycle.size(), kShown); ++i) {
      const auto [of, call] = cycle[i];
      const CommLog& log = LogOf(draft, of);
      text += fmt::format("{}rank {} in {} (node {})", i == 0 ? "" : ", ", log.rank,
                          log.calls[call].Text(log), log.calls[call].node);
    }
    return BadInput(fmt::format(
        "found a deadlock of {} communications: {}{}; expected an order in which all can complete",
        cycle.size(), text, cycle.size() > kShown ? " …" : ""));
  }

  Result<Job> Finish(Draft& draft) const {
    const ClassEvents events(draft.job);
    for (size_t i = 0; i < draft.job.classes.size(); ++i) {
      ETUDE_ASSIGN_OR_RETURN(draft.job.classes[i].program,
                             WithoutEvents(events[i], FormOf(draft, i).program, options_.limits));
    }
    return std::move(draft.job);
  }

  RankForms ranks_;
  const EncodeJobOptions& options_;
  Mesh mesh_;
};

}  // namespace

Result<Job> EncodeJob(std::span<const RankOfJob> ranks, const EncodeJobOptions& options) {
  ETUDE_ASSIGN_OR_RETURN(RankForms forms, MakeRankForms(ranks, options));
  return JobEncoder(std::move(forms), options).Run();
}

}  // namespace etude
