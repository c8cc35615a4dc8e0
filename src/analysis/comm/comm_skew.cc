#include "src/analysis/comm/comm_skew.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace etude {
namespace {

// One member of a collective, by the clock of the first rank.
struct Member {
  const CommLog* log = nullptr;
  const CommCall* call = nullptr;
  Nanos begin;
  Nanos end;
};

class Splitter {
 public:
  Splitter(std::span<const CommLog> logs, const CommMatch& match) : logs_(logs), match_(match) {}

  CommSkew Run() {
    for (const std::vector<CallPlace>& meeting : match_.meetings) Split(meeting);
    for (auto& [key, share] : shares_) skew_.ranks.push_back(std::move(share));
    std::ranges::stable_sort(skew_.meetings, std::ranges::greater{}, &CommSkew::Meeting::skew);
    return std::move(skew_);
  }

 private:
  void Split(const std::vector<CallPlace>& meeting) {
    if (meeting.size() < 2) {
      ++skew_.alone;
      return;
    }
    std::vector<Member> members;
    for (const CallPlace& place : meeting) {
      const CommLog& log = logs_[place.log];
      const CommCall& call = log.calls[place.call];
      const std::optional<Nanos> offset = match_.clocks[place.log].offset;
      if (!call.begin || !call.end) {
        ++skew_.untimed;
        return;
      }
      if (!offset) {
        ++skew_.unaligned;
        return;
      }
      members.push_back({&log, &call, *call.begin - *offset, *call.end - *offset});
    }
    Add(members);
  }

  void Add(const std::vector<Member>& members) {
    const Member& last = *std::ranges::max_element(members, {}, &Member::begin);
    const Nanos first_begin = std::ranges::min_element(members, {}, &Member::begin)->begin;
    const Nanos last_end = std::ranges::max_element(members, {}, &Member::end)->end;
    for (const Member& member : members) {
      CommSkew::RankShare& share = ShareOf(member);
      const Nanos own = member.end - member.begin;
      const Nanos waited = std::clamp(last.begin - member.begin, Nanos{}, std::max(own, Nanos{}));
      ++share.count;
      if (&member == &last) ++share.last;
      share.skew = share.skew + waited;
      share.transfer = share.transfer + (own - waited);
    }
    skew_.meetings.push_back({.call = last.call->Text(*last.log),
                              .node = last.call->node,
                              .last_rank = last.log->rank,
                              .ranks = members.size(),
                              .bytes = last.call->bytes,
                              .skew = last.begin - first_begin,
                              .transfer = std::max(last_end - last.begin, Nanos{})});
  }

  CommSkew::RankShare& ShareOf(const Member& member) {
    const CommCall& call = *member.call;
    std::string type(call.TypeName());
    const std::string& group = member.log->groups[call.group].name;
    CommSkew::RankShare& share = shares_[{type, group, member.log->rank}];
    share.rank = member.log->rank;
    share.type = std::move(type);
    share.group = group;
    return share;
  }

  std::span<const CommLog> logs_;
  const CommMatch& match_;
  std::map<std::tuple<std::string, std::string, int64_t>, CommSkew::RankShare> shares_;
  CommSkew skew_;
};

}  // namespace

CommSkew SplitSkew(std::span<const CommLog> logs, const CommMatch& match) {
  return Splitter(logs, match).Run();
}

}  // namespace etude
