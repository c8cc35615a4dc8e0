#include "src/synth/job/rank_forms.h"

#include <algorithm>
#include <deque>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/digit_runs.h"
#include "src/trace/trace_copy.h"
#include "src/trace/validator.h"

namespace etude {
namespace {

// Returns `name` with "{peer}" for each number equal to `peer`.
std::string NameWithoutPeer(std::string_view name, int64_t peer) {
  const std::string number = std::to_string(peer);
  return ReplaceDigits(name, [&](std::string_view digits, std::string_view /*rest*/) {
    return digits == number ? std::string_view(kPeerInName) : digits;
  });
}

class RankFormMaker {
 public:
  RankFormMaker(std::span<const RankOfJob> ranks, const EncodeJobOptions& options)
      : options_(options) {
    for (const RankOfJob& rank : ranks) {
      RankForm form;
      form.rank = rank.rank;
      form.trace = rank.trace;
      forms_.push_back(std::move(form));
    }
    std::ranges::sort(forms_, {}, &RankForm::rank);
  }

  Result<RankForms> Run() {
    ETUDE_RETURN_IF_ERROR(CheckRanks());
    ETUDE_RETURN_IF_ERROR(MatchCalls());
    ETUDE_RETURN_IF_ERROR(MakeForms());
    ETUDE_RETURN_IF_ERROR(SettleGroups());
    return RankForms{.forms = std::move(forms_),
                     .logs = std::move(logs_),
                     .events = std::move(events_),
                     .groups = std::move(groups_),
                     .facts = std::move(facts_)};
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
      return BadInput(fmt::format("rank {}: found a cycle of dependencies, expected none: {}",
                                  form.rank, CycleText(*form.trace)));
    }
    return {};
  }

  // Finds calls that belong together, by the same rule as `validate`.
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
      return BadInput(match.first_mismatch + "; expected communications that match on all ranks");
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
        event.routed = !at_hand.contains(*call.peer);  // until it is received
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

  // Returns the group of a rank with this name.
  size_t GroupOf(size_t form, StringId name) {
    const Trace& trace = *forms_[form].trace;
    std::string text(trace.text(name));
    std::vector<int64_t> ranks;
    if (const ProcessGroup* group = trace.FindGroup(name)) {
      const auto listed = trace.ints(group->ranks);
      ranks.assign(listed.begin(), listed.end());
    }
    const auto known = options_.groups.find(text);
    if (ranks.empty() && known != options_.groups.end()) ranks = known->second;
    const bool is_known = !ranks.empty();
    // Without a list, the members are those that communicate in it.
    if (ranks.empty() && std::ranges::count(logs_[form].groups, text, &CommLog::Group::name) == 0) {
      ranks = {forms_[form].rank};
    }
    std::ranges::sort(ranks);
    const auto [at, added] = group_ids_.emplace(std::tuple(text, is_known, ranks), groups_.size());
    if (added) {
      groups_.push_back({.name = std::move(text), .ranks = ranks, .known = is_known});
      users_.emplace_back();
    }
    users_[at->second].insert(forms_[form].rank);
    return at->second;
  }

  // A number in a name may be the partner's, or any other: uses the interpretation that makes more
  // ranks equal.
  Status MakeForms() {
    for (size_t i = 0; i < forms_.size(); ++i) ETUDE_RETURN_IF_ERROR(MakeForm(i, false));
    if (std::ranges::none_of(events_, &ActualEvent::routed)) return {};
    const size_t classes = EqualForms(forms_).size();
    if (classes == 1) return {};
    std::vector<RankForm> others;
    for (const RankForm& form : forms_) {
      RankForm& other = others.emplace_back();
      other.rank = form.rank;
      other.trace = form.trace;
    }
    std::swap(forms_, others);
    for (size_t i = 0; i < forms_.size(); ++i) ETUDE_RETURN_IF_ERROR(MakeForm(i, true));
    if (EqualForms(forms_).size() >= classes) std::swap(forms_, others);
    return {};
  }

  Status MakeForm(size_t at, bool peers_in_names) {
    RankForm& form = forms_[at];
    const Trace& trace = *form.trace;
    std::map<std::string, size_t, std::less<>> numbers;  // of groups by name
    const auto number = [&](StringId name) {
      if (name && numbers.emplace(trace.text(name), form.groups.size()).second) {
        form.groups.push_back(GroupOf(at, name));
        form.known.push_back(groups_[form.groups.back()].known);
      }
    };
    for (const auto& [node, comm] : trace.comms()) number(comm.group);
    for (const ProcessGroup& group : trace.process_groups()) number(group.name);
    form.listed.resize(form.groups.size());

    const std::vector<CommCall>& calls = logs_[at].calls;
    form.states_self.resize(calls.size());
    form.routed = routed_[at];
    std::unordered_map<NodeId, size_t> call_of;
    for (size_t i = 0; i < calls.size(); ++i) call_of.emplace(calls[i].facts, i);
    form.peers_in_names =
        peers_in_names && std::ranges::none_of(calls, [&](const CommCall& call) {
          return trace.name(call.facts).find(kPeerInName) != std::string_view::npos;
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
      std::optional<int64_t>& self = comm->self(row.kind);
      std::optional<int64_t>& peer = comm->peer(row.kind);
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
    // Copies again, so that the tables contain no removed names.
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
      for (const int64_t user : users_[i]) {
        if (std::ranges::binary_search(ranks, user)) continue;
        return BadInput(fmt::format("group '{}': found rank {}, which is not among its ranks ({})",
                                    groups_[i].name, user, RankListText(ranks)));
      }
    }
    return {};
  }

  static Status CheckNumber(int64_t rank, const std::string& group) {
    if (rank >= 0 && rank < kMostRanksOfJob) return {};
    return BadInput(fmt::format("group '{}': found rank {}, expected 0 to {}", group, rank,
                                kMostRanksOfJob - 1));
  }

  const EncodeJobOptions& options_;
  std::vector<RankForm> forms_;            // by rank
  std::vector<CommLog> logs_;              // by rank
  std::vector<std::vector<bool>> routed_;  // by rank and call: ActualEvent::routed
  std::vector<ActualEvent> events_;
  std::vector<ActualGroup> groups_;
  std::vector<std::set<int64_t>> users_;  // by group
  std::map<std::tuple<std::string, bool, std::vector<int64_t>>, size_t> group_ids_;
  std::map<int64_t, RankFacts> facts_;
};

}  // namespace

bool RankForm::SameAs(const RankForm& other) const {
  for (const StatInfo& info : StatTable()) {
    if (program.stats()[info.stat] != other.program.stats()[info.stat]) return false;
  }
  return hash == other.hash && known == other.known && listed == other.listed &&
         states_rank == other.states_rank && peers_in_names == other.peers_in_names &&
         states_self == other.states_self && routed == other.routed &&
         program.SameContent(other.program);
}

Result<RankForms> MakeRankForms(std::span<const RankOfJob> ranks, const EncodeJobOptions& options) {
  return RankFormMaker(ranks, options).Run();
}

std::vector<std::vector<size_t>> EqualForms(const std::vector<RankForm>& forms) {
  std::vector<std::vector<size_t>> classes;
  std::unordered_multimap<uint64_t, size_t> by_hash;
  for (size_t i = 0; i < forms.size(); ++i) {
    const auto [begin, end] = by_hash.equal_range(forms[i].hash);
    const auto same = std::find_if(begin, end, [&](const auto& entry) {
      return forms[classes[entry.second].front()].SameAs(forms[i]);
    });
    if (same != end) {
      classes[same->second].push_back(i);
      continue;
    }
    by_hash.emplace(forms[i].hash, classes.size());
    classes.push_back({i});
  }
  return classes;
}

}  // namespace etude
