#include "src/analysis/comm/comm_match.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/format_count.h"

namespace etude {
namespace {

// Returns true if all members contribute equal amounts.
bool HasOneSize(CollectiveType type) {
  return EndsTogether(type) && type != CollectiveType::kAllToAll;
}

bool Agree(const CommCall& a, const CommCall& b) {
  if (a.type != b.type) return false;
  if (a.type == CollectiveType::kUnknown && a.name != b.name) return false;
  const bool sizes_count = HasOneSize(a.type) && !a.uneven && !b.uneven && a.bytes && b.bytes;
  return !sizes_count || a.bytes == b.bytes;
}

class Matcher {
 public:
  explicit Matcher(std::span<const CommLog> logs) : logs_(logs) {
    for (size_t i = 0; i < logs.size(); ++i) {
      log_of_rank_.emplace(logs[i].rank, i);
      done_.emplace_back(logs[i].calls.size());
    }
  }

  CommMatch Run() {
    FindMissingRanks();
    LeaveOtherStepsOut();
    MatchCollectives();
    MatchPointToPoint();
    for (const auto& done : done_) {
      match_.unmatched += static_cast<uint64_t>(std::ranges::count(done, false));
    }
    if (match_.unmatched != 0) Explain();
    for (const CommLog& log : logs_) match_.ungrouped += log.ungrouped;
    match_.one_clock = HaveOneClock(logs_);
    match_.one_machine = !match_.one_clock && logs_.size() > 1 && AreOfOneMachine(logs_);
    match_.clocks = CompareClocks(logs_, match_.meetings);
    return std::move(match_);
  }

 private:
  const CommCall& CallAt(const CallPlace& place) const {
    return logs_[place.log].calls[place.call];
  }

  // Calls `fn(place, call)` for all calls of all ranks that are not ignored.
  template <typename Fn>
  void ForEachCall(Fn fn) const {
    for (size_t i = 0; i < logs_.size(); ++i) {
      for (size_t k = 0; k < logs_[i].calls.size(); ++k) {
        if (IsOfCommonStep(logs_[i].calls[k])) fn(CallPlace{i, k}, logs_[i].calls[k]);
      }
    }
  }

  bool IsOfCommonStep(const CommCall& call) const {
    return match_.different_steps.empty() ||
           (call.step && std::ranges::binary_search(common_steps_, *call.step));
  }

  static std::string StepsText(const CommLog& log) {
    const bool is_one = log.steps.size() == 1;
    return fmt::format("rank {}: {}{}", log.rank, log.steps.front(),
                       is_one ? "" : fmt::format(" to {}", log.steps.back()));
  }

  void LeaveOtherStepsOut() {
    if (logs_.empty() ||
        std::ranges::any_of(logs_, [](const CommLog& log) { return log.steps.empty(); })) {
      return;
    }
    const auto other = std::ranges::find_if(
        logs_, [&](const CommLog& log) { return log.steps != logs_.front().steps; });
    if (other == logs_.end()) return;
    match_.different_steps = StepsText(logs_.front()) + ", " + StepsText(*other);
    common_steps_ = logs_.front().steps;
    for (const CommLog& log : logs_) {
      std::erase_if(common_steps_,
                    [&](int64_t step) { return !std::ranges::binary_search(log.steps, step); });
    }
    for (size_t i = 0; i < logs_.size(); ++i) {
      for (size_t k = 0; k < logs_[i].calls.size(); ++k) {
        if (IsOfCommonStep(logs_[i].calls[k])) continue;
        done_[i][k] = true;
        ++match_.other_steps;
      }
    }
  }

  void FindMissingRanks() {
    std::set<int64_t> wanted;
    for (const CommLog& log : logs_) {
      if (log.world_size) match_.world_sizes[*log.world_size].push_back(log.rank);
      for (int64_t rank = 0; rank < std::min<int64_t>(log.world_size.value_or(0), kMostRanks);
           ++rank) {
        wanted.insert(rank);
      }
      for (const auto& group : log.groups) wanted.insert(group.ranks.begin(), group.ranks.end());
    }
    for (const int64_t rank : wanted) {
      if (!log_of_rank_.contains(rank)) match_.missing_ranks.push_back(rank);
    }
  }

  // Calls of a group, by log, each in order of issue.
  struct GroupCalls {
    bool is_all = false;
    std::map<size_t, std::vector<CallPlace>> queues;
  };

  void MatchCollectives() {
    std::map<CommLog::Group, GroupCalls> groups;
    ForEachCall([&](const CallPlace& place, const CommCall& call) {
      if (call.kind != NodeKind::kCollective) return;
      const CommLog::Group& group = logs_[place.log].groups[call.group];
      GroupCalls& calls = groups[group];
      calls.is_all = calls.is_all || group.is_all;
      calls.queues[place.log].push_back(place);
    });
    SetUnknownGroupsAside(groups);
    for (auto& [group, calls] : groups) {
      // Members with a trace that never take part are required as well.
      for (const int64_t rank : group.ranks) {
        if (const auto log = log_of_rank_.find(rank); log != log_of_rank_.end()) {
          calls.queues[log->second];
        }
      }
      for (size_t i = 0; calls.is_all && i < logs_.size(); ++i) calls.queues[i];
      if (IsOfOneAlone(group, calls)) continue;
      MatchGroup(calls.queues);
    }
    for (const auto& [log, calls] : unknown_) {
      for (const CallPlace& place : calls) {
        if (done_[place.log][place.call]) continue;
        ++match_.unknown_groups;
        done_[place.log][place.call] = true;
      }
    }
  }

  // Returns true if only one rank makes calls without a group although all ranks of the job have
  // traces.
  bool IsOfOneAlone(const CommLog::Group& group, const GroupCalls& calls) const {
    return calls.queues.size() == 1 && group == CommLog::Group() && logs_.size() > 1 &&
           match_.missing_ranks.empty();
  }

  // Calls without a group belong to one unnamed group if they are equal on all ranks. Otherwise the
  // recording lacks their named groups.
  void SetUnknownGroupsAside(std::map<CommLog::Group, GroupCalls>& groups) {
    const auto unnamed = groups.find(CommLog::Group());
    if (unnamed == groups.end() || groups.size() == 1) return;
    const auto& queues = unnamed->second.queues;
    const std::vector<CallPlace>& first = queues.begin()->second;
    const bool is_group =
        queues.size() == logs_.size() && std::ranges::all_of(queues, [&](const auto& entry) {
          return std::ranges::equal(first, entry.second, [&](const auto& a, const auto& b) {
            return Agree(CallAt(a), CallAt(b));
          });
        });
    if (is_group) return;
    unknown_ = queues;
    groups.erase(unnamed);
  }

  // Calls of one rank in a group, in order of issue.
  struct Queue {
    size_t log = 0;
    std::span<const CallPlace> calls;  // not yet matched
  };

  // Matches the k-th calls of a group on all its ranks.
  void MatchGroup(const std::map<size_t, std::vector<CallPlace>>& calls) {
    std::vector<Queue> queues;
    for (const auto& [log, places] : calls) queues.push_back({.log = log, .calls = places});
    while (true) {
      std::vector<CallPlace> meeting;
      for (const Queue& queue : queues) {
        if (!queue.calls.empty()) meeting = Meet(CallAt(queue.calls.front()), queues);
        if (!meeting.empty() || unknown_.empty()) break;
      }
      if (meeting.empty()) return;
      if (meeting.size() > 1) ++match_.collectives;
      for (size_t i = 0; i < meeting.size(); ++i) {
        done_[meeting[i].log][meeting[i].call] = true;
        std::span<const CallPlace>& left = queues[i].calls;
        if (!left.empty() && left.front().call == meeting[i].call) left = left.subspan(1);
      }
      match_.meetings.push_back(std::move(meeting));
    }
  }

  // Returns a call of each queue that matches `call`: the next one, or an earlier one of its rank
  // of an unknown group; empty if one has none.
  std::vector<CallPlace> Meet(const CommCall& call, const std::vector<Queue>& queues) const {
    std::vector<CallPlace> meeting;
    for (const Queue& queue : queues) {
      std::optional<CallPlace> place;
      if (!queue.calls.empty()) place = queue.calls.front();
      if (!place || !Agree(call, CallAt(*place))) place = UnknownBefore(call, queue.log, place);
      if (!place) return {};
      meeting.push_back(*place);
    }
    return meeting;
  }

  std::optional<CallPlace> UnknownBefore(const CommCall& call, size_t log,
                                         const std::optional<CallPlace>& before) const {
    const auto calls = unknown_.find(log);
    if (calls == unknown_.end()) return std::nullopt;
    for (const CallPlace& place : calls->second) {
      if (before && place.call > before->call) break;
      if (!done_[log][place.call] && Agree(call, CallAt(place))) return place;
    }
    return std::nullopt;
  }

  void MatchPointToPoint() {
    std::map<std::tuple<int64_t, int64_t, int64_t>, std::deque<CallPlace>> sends;
    const auto key = [](int64_t from, int64_t to, const CommCall& call) {
      return std::tuple(from, to, call.tag.value_or(0));
    };
    ForEachCall([&](const CallPlace& place, const CommCall& call) {
      if (call.kind != NodeKind::kSend || !call.peer) return;
      sends[key(logs_[place.log].rank, *call.peer, call)].push_back(place);
    });
    ForEachCall([&](const CallPlace& place, const CommCall& call) {
      if (call.kind != NodeKind::kRecv || !call.peer) return;
      const auto queue = sends.find(key(*call.peer, logs_[place.log].rank, call));
      if (queue == sends.end() || queue->second.empty()) return;
      const CallPlace send = queue->second.front();
      queue->second.pop_front();
      // More than the receive has room for, or less than it waits for.
      const CommCall& sent = CallAt(send);
      if (sent.bytes && call.bytes && sent.bytes != call.bytes) return;
      done_[send.log][send.call] = done_[place.log][place.call] = true;
      ++match_.point_to_point;
      match_.messages.emplace_back(send, place);
    });
    ExcuseUnknownPartners();
  }

  // A partner without a trace, or with unrecorded partners, may have taken part.
  void ExcuseUnknownPartners() {
    std::set<std::pair<NodeKind, int64_t>> open;  // ranks with such calls, whose partner may be
                                                  // any other
    ForEachCall([&](const CallPlace& place, const CommCall& call) {
      if (call.kind == NodeKind::kCollective || call.peer) return;
      ++match_.unknown_partners;
      open.emplace(call.kind, logs_[place.log].rank);
    });
    ForEachCall([&](const CallPlace& place, const CommCall& call) {
      if (call.kind == NodeKind::kCollective) return;
      const NodeKind other = call.kind == NodeKind::kSend ? NodeKind::kRecv : NodeKind::kSend;
      if (!call.peer || !log_of_rank_.contains(*call.peer) || open.contains({other, *call.peer})) {
        done_[place.log][place.call] = true;
      }
    });
  }

  // Returns the first call of a rank that does not complete.
  std::optional<CallPlace> Stuck(size_t log) const {
    const auto found = std::ranges::find(done_[log], false);
    if (found == done_[log].end()) return std::nullopt;
    return CallPlace{log, static_cast<size_t>(found - done_[log].begin())};
  }

  static std::string SizeText(const CommCall& call) {
    return call.bytes && call.bytes->count >= 0
               ? fmt::format(" ({})", FormatCount(static_cast<uint64_t>(call.bytes->count), "byte"))
               : "";
  }

  // Returns the ranks that `place` waits for.
  std::vector<size_t> Partners(const CallPlace& place) const {
    const CommCall& call = CallAt(place);
    std::vector<size_t> partners;
    if (call.kind != NodeKind::kCollective) {
      partners.push_back(log_of_rank_.at(*call.peer));
      return partners;
    }
    const CommLog::Group& group = logs_[place.log].groups[call.group];
    for (size_t i = 0; i < logs_.size(); ++i) {
      const bool named = std::ranges::count(group.ranks, logs_[i].rank) != 0;
      const bool knows = std::ranges::count(logs_[i].groups, group) != 0;
      if (i != place.log && (group.ranks.empty() ? knows || group.is_all : named)) {
        partners.push_back(i);
      }
    }
    return partners;
  }

  // Returns true if the rank of `there` is in the same call as `here`.
  bool SameCall(const CallPlace& here, const CallPlace& there) const {
    const CommCall& a = CallAt(here);
    const CommCall& b = CallAt(there);
    return a.kind == NodeKind::kCollective && b.kind == a.kind && a.index == b.index &&
           logs_[here.log].groups[a.group] == logs_[there.log].groups[b.group] && Agree(a, b);
  }

  void Explain() {
    constexpr size_t kLinks = 8;
    size_t first = 0;
    while (!Stuck(first)) ++first;
    std::string text;
    std::set<size_t> told;
    std::optional<CallPlace> here = Stuck(first);
    while (here && told.insert(here->log).second && told.size() <= kLinks) {
      const CommCall& call = CallAt(*here);
      const CommLog& log = logs_[here->log];
      text += fmt::format("{}rank {} {} {}{} (node {})", text.empty() ? "" : "; ", log.rank,
                          text.empty() ? "waits in" : "is in", call.Text(log), SizeText(call),
                          call.node);
      std::optional<CallPlace> next;
      for (const size_t partner : Partners(*here)) {
        const std::optional<CallPlace> there = Stuck(partner);
        if (!there) {
          text +=
              fmt::format("; rank {} has no further matching communication", logs_[partner].rank);
          next.reset();
          break;
        }
        if (!next && !SameCall(*here, *there)) next = there;
      }
      here = next;
    }
    match_.first_mismatch = std::move(text);
  }

  static constexpr int64_t kMostRanks = 1 << 20;  // max plausible world size

  std::span<const CommLog> logs_;
  std::map<int64_t, size_t> log_of_rank_;
  std::vector<int64_t> common_steps_;    // ascending, if steps differ
  std::vector<std::vector<bool>> done_;  // by log and call
  // By log: calls whose group is not recorded.
  std::map<size_t, std::vector<CallPlace>> unknown_;
  CommMatch match_;
};

}  // namespace

CommMatch MatchComms(std::span<const CommLog> logs) { return Matcher(logs).Run(); }

}  // namespace etude
