#include "src/transform/runnable/runnable_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace etude {
namespace {

class Matcher {
 public:
  explicit Matcher(RunnableJob& job) : ranks_(job.ranks), plans_(job.plans), job_(job) {}

  void Run() {
    MatchCollectives();
    MatchMessages();
  }

 private:
  using What = RunnablePlan::What;

  // A communication node, by its rank's index in ranks_ and its own index there.
  struct At {
    uint32_t rank = 0;
    uint32_t node = 0;
  };

  // Matches the collectives of each group's ranks one by one. Replays all of them from the first
  // disagreement on.
  void MatchCollectives() {
    std::map<int64_t, std::vector<std::vector<At>>> groups;  // per group and rank
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      std::map<int64_t, std::vector<At>> own;
      for (uint32_t i = 0; i < ranks_[rank].nodes.size(); ++i) {
        const RunnablePlan& plan = plans_[rank][i];
        if (ranks_[rank].nodes[i].kind != NodeKind::kCollective) continue;
        // Collectives of unknown type match too, because all ranks have them in the same place.
        if (plan.what == What::kRuns || plan.why == RunnableNote::kUnknownType) {
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
        PlanAt(list[k]).Replay(RunnableNote::kInconsistent);
      }
    }
  }

  // Returns the number of ranks of the group with a trace.
  size_t Present(int64_t group) const {
    if (group == 0) return ranks_.size();
    return static_cast<size_t>(std::ranges::count_if(job_.groups.at(group), [&](int64_t member) {
      return std::ranges::binary_search(ranks_, member, {},
                                        [](const RunnableRank& rank) { return *rank.rank; });
    }));
  }

  void MatchInstance(const std::vector<std::vector<At>>& lists, size_t k) {
    int64_t size = 0;
    std::optional<int64_t> root;
    for (const auto& list : lists) {
      size = std::max(size, PlanAt(list[k]).size);
      if (!root) root = PlanAt(list[k]).root;
    }
    const bool moves = NodeAt(lists.front()[k]).type != CollectiveType::kBarrier;
    for (const auto& list : lists) {
      RunnablePlan& plan = PlanAt(list[k]);
      if (plan.what == What::kReplayed) {
        plan.size = size;
        continue;
      }
      plan.match = matches_;
      plan.root = root;
      if (size == 0 && moves) {
        plan.LeaveOut(RunnableNote::kNoSize);
        continue;
      }
      plan.raised = plan.size != size;
      plan.size = size;
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
    if (lists.size() < Present(group)) text += ", missing on ranks without collectives";
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
        const RunnableNode& node = ranks_[rank].nodes[i];
        const RunnablePlan& plan = plans_[rank][i];
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

  void MatchPair(RunnablePlan& send, RunnablePlan& recv) {
    const int64_t size = std::max(send.size, recv.size);
    for (RunnablePlan* side : {&send, &recv}) {
      if (size <= 0) {
        side->LeaveOut(RunnableNote::kNoSize);
        continue;
      }
      side->raised = side->size != size;
      side->size = size;
      side->match = matches_;
    }
    ++matches_;
  }

  static void LeaveAlone(RunnablePlan& plan, bool peer_is_there) {
    if (peer_is_there) {
      plan.LeaveOut(RunnableNote::kUnmatched);
    } else if (plan.size <= 0) {
      plan.LeaveOut(RunnableNote::kNoSize);
    }
  }

  RunnablePlan& PlanAt(At at) { return plans_[at.rank][at.node]; }
  const RunnableNode& NodeAt(At at) const { return ranks_[at.rank].nodes[at.node]; }

  const std::vector<RunnableRank>& ranks_;
  std::vector<std::vector<RunnablePlan>>& plans_;
  RunnableJob& job_;
  uint32_t matches_ = 0;
  bool told_inconsistent_ = false;
  bool told_unmatched_ = false;
};

}  // namespace

void MatchCommunications(RunnableJob& job) { Matcher(job).Run(); }

}  // namespace etude
