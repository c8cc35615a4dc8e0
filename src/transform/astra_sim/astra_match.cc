#include "src/transform/astra_sim/astra_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "src/transform/astra_sim/astra_sim.h"

namespace etude {
namespace {

class Matcher {
 public:
  Matcher(const std::vector<AstraRank>& ranks, int64_t least_gather,
          std::vector<std::vector<AstraPlan>>& plans, AstraJob& job)
      : ranks_(ranks), least_gather_(least_gather), plans_(plans), job_(job) {}

  void Run() {
    MatchCollectives();
    MatchMessages();
  }

 private:
  using What = AstraPlan::What;

  // A communication node, by its rank's index in ranks_ and its own index there.
  struct At {
    uint32_t rank = 0;
    uint32_t node = 0;
  };

  // Matches the collectives of each group's ranks one by one. From the first disagreement on, all
  // are replayed.
  void MatchCollectives() {
    std::map<int64_t, std::vector<std::vector<At>>> groups;  // per group and rank
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      std::map<int64_t, std::vector<At>> own;
      for (uint32_t i = 0; i < ranks_[rank].nodes.size(); ++i) {
        const AstraPlan& plan = plans_[rank][i];
        if (ranks_[rank].nodes[i].kind != NodeKind::kCollective) continue;
        // Includes types that ASTRA-sim replays: other simulators run them.
        if (plan.what == What::kRuns || plan.why == AstraNote::kReplayed ||
            plan.why == AstraNote::kUnknownType) {
          own[plan.group].push_back({rank, i});
        }
      }
      for (auto& [group, list] : own) groups[group].push_back(std::move(list));
    }
    for (const auto& [group, lists] : groups) MatchGroup(group, lists);
  }

  void MatchGroup(int64_t group, const std::vector<std::vector<At>>& lists) {
    size_t most = 0;
    for (const auto& list : lists) most = std::max(most, list.size());
    size_t agreed = 0;
    const auto agree = [&](size_t k) {
      return lists.size() == Present(group) && std::ranges::all_of(lists, [&](const auto& list) {
               return k < list.size() && NodeAt(list[k]).type == NodeAt(lists.front()[k]).type;
             });
    };
    while (agreed < most && agree(agreed)) MatchInstance(lists, agreed++);
    if (agreed == most) return;
    if (!told_inconsistent_) job_.messages.push_back(Disagreement(group, lists, agreed));
    told_inconsistent_ = true;
    for (const auto& list : lists) {
      for (size_t k = agreed; k < list.size(); ++k) {
        PlanAt(list[k]).Replay(AstraNote::kInconsistent);
      }
    }
  }

  // Returns the number of ranks of the group with a trace.
  size_t Present(int64_t group) const {
    if (group == 0) return ranks_.size();
    return static_cast<size_t>(std::ranges::count_if(job_.groups.at(group), [&](int64_t member) {
      return std::ranges::binary_search(ranks_, member, {},
                                        [](const AstraRank& rank) { return *rank.rank; });
    }));
  }

  void MatchInstance(const std::vector<std::vector<At>>& lists, size_t k) {
    int64_t size = 0;
    std::optional<int64_t> root;
    for (const auto& list : lists) {
      size = std::max(size, PlanAt(list[k]).size);
      if (!root) root = PlanAt(list[k]).root;
    }
    const bool raise =
        NodeAt(lists.front()[k]).type == CollectiveType::kAllGather && size < least_gather_;
    for (const auto& list : lists) {
      AstraPlan& plan = PlanAt(list[k]);
      if (plan.what == What::kReplayed) {
        plan.size = size;
        continue;
      }
      plan.match = matches_;
      plan.root = root;
      if (size == 0) {
        plan.LeaveOut(AstraNote::kNoSize);
        continue;
      }
      if (plan.size != size) job_.notes.Count(AstraNote::kSizeRaised);
      if (raise) job_.notes.Count(AstraNote::kSmallGather);
      plan.size = raise ? least_gather_ : size;
    }
    ++matches_;
  }

  std::string Disagreement(int64_t group, const std::vector<std::vector<At>>& lists,
                           size_t k) const {
    const std::string name = group == 0 ? "of all ranks" : fmt::format("{}", group);
    std::string text = fmt::format("group {}: collective {} is", name, k + 1);
    std::set<std::string_view> told;
    for (const auto& list : lists) {
      const std::string_view type = k < list.size() ? Name(NodeAt(list[k]).type) : "missing";
      if (!told.insert(type).second) continue;
      text += fmt::format("{} {} on rank {}", told.size() == 1 ? "" : ",", type,
                          *ranks_[list.front().rank].rank);
    }
    if (lists.size() < Present(group)) text += ", missing on ranks that have none at all";
    return text;
  }

  // Matches the k-th send of a rank to another with a tag to the k-th receive there. In ASTRA-sim
  // the first ready receive would take the first message; a separate tag for each message prevents
  // that.
  void MatchMessages() {
    using Key = std::tuple<int64_t, int64_t, int64_t>;  // from, to, tag
    std::map<Key, std::pair<std::vector<At>, std::vector<At>>> pairs;
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      for (uint32_t i = 0; i < ranks_[rank].nodes.size(); ++i) {
        const AstraNode& node = ranks_[rank].nodes[i];
        const AstraPlan& plan = plans_[rank][i];
        if (plan.what != What::kRuns) continue;
        const int64_t own = *ranks_[rank].rank;
        const int64_t tag = node.tag.value_or(0);
        if (node.kind == NodeKind::kSend) pairs[{own, plan.peer, tag}].first.push_back({rank, i});
        if (node.kind == NodeKind::kRecv) pairs[{plan.peer, own, tag}].second.push_back({rank, i});
      }
    }
    std::map<std::pair<int64_t, int64_t>, int64_t> tags;
    for (const auto& [key, sides] : pairs) {
      const auto& [sends, recvs] = sides;
      int64_t& tag = tags[{std::get<0>(key), std::get<1>(key)}];
      for (const auto& side : {sends, recvs}) {
        for (size_t k = 0; k < side.size(); ++k) {
          PlanAt(side[k]).tag = tag + static_cast<int64_t>(k);
        }
      }
      tag += static_cast<int64_t>(std::max(sends.size(), recvs.size()));
      const bool both_there = !std::ranges::binary_search(job_.missing, std::get<0>(key)) &&
                              !std::ranges::binary_search(job_.missing, std::get<1>(key));
      const size_t common = std::min(sends.size(), recvs.size());
      for (size_t k = 0; k < common; ++k) MatchPair(PlanAt(sends[k]), PlanAt(recvs[k]));
      for (const auto& side : {sends, recvs}) {
        for (size_t k = common; k < side.size(); ++k) LeaveAlone(PlanAt(side[k]), both_there);
      }
      if (both_there && sends.size() != recvs.size() && !told_unmatched_) {
        told_unmatched_ = true;
        job_.messages.push_back(fmt::format(
            "rank {} sends {} messages with tag {} to rank {}, which receives {}", std::get<0>(key),
            sends.size(), std::get<2>(key), std::get<1>(key), recvs.size()));
      }
    }
  }

  void MatchPair(AstraPlan& send, AstraPlan& recv) {
    const int64_t size = std::max(send.size, recv.size);
    for (AstraPlan* side : {&send, &recv}) {
      if (size <= 0) {
        side->LeaveOut(AstraNote::kNoSize);
        continue;
      }
      if (side->size != size) job_.notes.Count(AstraNote::kSizeRaised);
      side->size = size;
      side->match = matches_;
    }
    ++matches_;
  }

  static void LeaveAlone(AstraPlan& plan, bool peer_is_there) {
    if (peer_is_there) {
      plan.LeaveOut(AstraNote::kUnmatched);
    } else if (plan.size <= 0) {
      plan.LeaveOut(AstraNote::kNoSize);
    }
  }

  AstraPlan& PlanAt(At at) { return plans_[at.rank][at.node]; }
  const AstraNode& NodeAt(At at) const { return ranks_[at.rank].nodes[at.node]; }

  const std::vector<AstraRank>& ranks_;
  const int64_t least_gather_;
  std::vector<std::vector<AstraPlan>>& plans_;
  AstraJob& job_;
  uint32_t matches_ = 0;
  bool told_inconsistent_ = false;
  bool told_unmatched_ = false;
};

}  // namespace

void MatchAstraPlans(const std::vector<AstraRank>& ranks, int64_t least_gather,
                     std::vector<std::vector<AstraPlan>>& plans, AstraJob& job) {
  Matcher(ranks, least_gather, plans, job).Run();
}

}  // namespace etude
