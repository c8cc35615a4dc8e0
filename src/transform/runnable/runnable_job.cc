#include "src/transform/runnable/runnable_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "src/base/text/format_count.h"
#include "src/trace/job/rank_set.h"
#include "src/transform/runnable/runnable_groups.h"
#include "src/transform/runnable/runnable_match.h"

namespace etude {
namespace {

// Returns the bytes of a collective; nullopt if unknown.
std::optional<int64_t> SizeOf(const RunnableNode& node, int64_t group_size) {
  if (node.type == CollectiveType::kBarrier) return 0;
  if (node.bytes_in || !node.bytes_out) return node.bytes_in;
  int64_t bytes = *node.bytes_out;
  const bool gathers =
      node.type == CollectiveType::kAllGather || node.type == CollectiveType::kGather;
  if (gathers) return bytes / group_size;
  const bool scatters = node.type == CollectiveType::kReduceScatter ||
                        node.type == CollectiveType::kReduceScatterBlock ||
                        node.type == CollectiveType::kScatter;
  if (!scatters) return bytes;
  if (__builtin_mul_overflow(bytes, group_size, &bytes)) return std::nullopt;
  return bytes;
}

// Checks that another rank can do the same as this one.
Status CheckCopy(const RunnableRank& rank, int64_t world_size) {
  const RunnableGroups groups(rank, world_size);
  for (const RunnableNode& node : rank.nodes) {
    if (node.kind == NodeKind::kSend || node.kind == NodeKind::kRecv) {
      return BadInput(fmt::format(
          "cannot fill in ranks: rank {} sends to or receives from a certain rank", *rank.rank));
    }
    if (node.kind != NodeKind::kCollective) continue;
    const GroupMembers members = groups.MembersOf(node);
    if (members.ranks != nullptr) {
      return BadInput(fmt::format(
          "cannot fill in ranks: rank {} is in a group of {} ranks that excludes other ranks",
          *rank.rank, members.size));
    }
  }
  return {};
}

// Checks that ranks without a trace can do the same as this one, whose groups must not list some
// ranks of the job only.
Status CheckOneForAll(const RunnableRank& rank, int64_t world_size) {
  ETUDE_RETURN_IF_ERROR(CheckCopy(rank, world_size));
  const RunnableGroups groups(rank, world_size);
  const auto is_outside = [&](int64_t member) { return member < 0 || member >= world_size; };
  for (const RunnableNode& node : rank.nodes) {
    if (node.kind != NodeKind::kCollective || node.group == RunnableNode::kNone) continue;
    const auto& members = rank.groups[node.group].ranks;
    if (!members || groups.MembersOf(node).size == world_size) continue;
    if (std::ranges::any_of(*members, is_outside)) continue;  // unknown to all ranks
    return BadInput(
        fmt::format("cannot fill in ranks: rank {} is in a group of {} that excludes other ranks",
                    *rank.rank, FormatCount(members->size(), "rank")));
  }
  return {};
}

class RunnableJobMaker {
 public:
  RunnableJobMaker(std::vector<RunnableRank> ranks, const RunnableJobOptions& options)
      : options_(options) {
    job_.ranks = std::move(ranks);
  }

  Result<RunnableJob> Run() {
    ETUDE_RETURN_IF_ERROR(SortRanks());
    ETUDE_RETURN_IF_ERROR(FindWorld());
    ETUDE_RETURN_IF_ERROR(FindMissing());
    const bool is_filled =
        IsOneForAll() || std::ranges::any_of(job_.ranks, [](const RunnableRank& rank) {
          return rank.copy_of.has_value();
        });
    TakeCallers(job_.ranks, job_.world_known && job_.missing.empty() && !is_filled);
    for (const RunnableRank& rank : job_.ranks) {
      job_.notes.Add(rank.notes);
      job_.plans.emplace_back(rank.nodes.size());
      groups_.emplace_back(rank, job_.world_size);
    }
    group_ids_ = NumberGroups(job_.ranks, groups_);
    job_.groups = std::move(group_ids_.groups);
    job_.renamed_groups = group_ids_.renamed;
    for (uint32_t i = 0; i < job_.ranks.size(); ++i) PlanRank(i);
    MatchCommunications(job_);
    return std::move(job_);
  }

 private:
  Status SortRanks() {
    if (job_.ranks.empty()) return BadInput("found no trace, expected at least one");
    if (job_.ranks.size() == 1 && !job_.ranks.front().rank) job_.ranks.front().rank = 0;
    for (const RunnableRank& rank : job_.ranks) {
      if (!rank.rank)
        return BadInput("found a trace of unknown rank among several, expected a rank in each");
      if (*rank.rank < 0 || *rank.rank >= kMostListedRanks) {
        return BadInput(
            fmt::format("found rank {}, expected 0 to {}", *rank.rank, kMostListedRanks - 1));
      }
    }
    std::ranges::sort(job_.ranks, {}, [](const RunnableRank& rank) { return *rank.rank; });
    const auto same = std::ranges::adjacent_find(
        job_.ranks, {}, [](const RunnableRank& rank) { return *rank.rank; });
    if (same == job_.ranks.end()) return {};
    return BadInput(fmt::format("found two traces of rank {}, expected one", *same->rank));
  }

  // Sets the number of ranks from all facts of the traces.
  Status FindWorld() {
    int64_t world = 0;
    const auto at_least = [&](int64_t count) {
      if (count <= kMostListedRanks) world = std::max(world, count);
    };
    for (const RunnableRank& rank : job_.ranks) {
      at_least(rank.world_size.value_or(0));
      for (const RunnableGroup& group : rank.groups) {
        at_least(group.size.value_or(0));
        if (!group.ranks) continue;
        for (const int64_t member : *group.ranks) at_least(std::min(member, kMostListedRanks) + 1);
      }
      for (const RunnableNode& node : rank.nodes) at_least(node.group_size.value_or(0));
    }
    job_.world_known = world > 0 || job_.ranks.size() > 1 || options_.ranks > 0;
    for (const RunnableRank& rank : job_.ranks) at_least(*rank.rank + 1);
    if (options_.ranks > kMostListedRanks ||
        (options_.ranks > 0 && world > 1 && options_.ranks != world)) {
      return BadInput(fmt::format("found a job of {} ranks, expected {} as given by --ranks", world,
                                  options_.ranks));
    }
    job_.world_size = std::max(world, options_.ranks);
    return {};
  }

  // Returns whether the only rank also does what ranks without a trace do.
  bool IsOneForAll() const {
    return options_.fill_ranks && options_.one_for_all && job_.ranks.size() == 1 &&
           job_.world_size > 1;
  }

  Status FindMissing() {
    if (IsOneForAll()) return CheckOneForAll(job_.ranks.front(), job_.world_size);
    if (options_.fill_ranks) return FillRanks(job_.world_size, job_.ranks);
    for (int64_t rank = 0; rank < job_.world_size; ++rank) {
      const auto of = [](const RunnableRank& one) { return *one.rank; };
      if (!std::ranges::binary_search(job_.ranks, rank, {}, of)) job_.missing.push_back(rank);
    }
    return {};
  }

  void PlanRank(uint32_t rank) {
    for (uint32_t i = 0; i < job_.ranks[rank].nodes.size(); ++i) {
      const RunnableNode& node = job_.ranks[rank].nodes[i];
      RunnablePlan& plan = job_.plans[rank][i];
      if (node.kind == NodeKind::kCollective) PlanCollective(rank, node, plan);
      if (node.kind == NodeKind::kSend || node.kind == NodeKind::kRecv) {
        PlanMessage(rank, node, plan);
      }
    }
  }

  void PlanCollective(uint32_t rank, const RunnableNode& node, RunnablePlan& plan) const {
    const GroupMembers members = groups_[rank].MembersOf(node);
    if (members.size == 1 && job_.world_known) return plan.LeaveOut(RunnableNote::kOneRank);
    plan.size = std::max<int64_t>(SizeOf(node, std::max<int64_t>(members.size, 1)).value_or(0), 0);
    if (members.size == 0) return plan.Replay(RunnableNote::kUnknownGroup);
    if (members.ranks != nullptr) plan.group = group_ids_.ids[rank][node.group];
    if (node.type == CollectiveType::kUnknown) return plan.Replay(RunnableNote::kUnknownType);
    const bool has_root = HasRoot(node.type) && node.root;
    if (has_root && *node.root >= 0 && *node.root < members.size) plan.root = node.root;
  }

  void PlanMessage(uint32_t rank, const RunnableNode& node, RunnablePlan& plan) const {
    const int64_t peer = node.peer.value_or(-1);
    if (peer < 0 || peer >= job_.world_size || peer == *job_.ranks[rank].rank) {
      return plan.LeaveOut(RunnableNote::kNoPeer);
    }
    plan.peer = peer;
    plan.size = node.bytes_in.value_or(node.bytes_out.value_or(0));
  }

  const RunnableJobOptions& options_;
  RunnableJob job_;
  std::vector<RunnableGroups> groups_;  // by rank
  RunnableGroupIds group_ids_;
};

}  // namespace

Status FillRanks(int64_t world_size, std::vector<RunnableRank>& ranks) {
  const size_t present = ranks.size();
  for (int64_t rank = 0; rank < world_size; ++rank) {
    const auto known = std::span(ranks).first(present);
    const auto at = std::ranges::lower_bound(known, rank, {},
                                             [](const RunnableRank& one) { return *one.rank; });
    if (at != known.end() && *at->rank == rank) continue;
    const bool before =
        at != known.begin() && (at == known.end() || rank - *(at - 1)->rank <= *at->rank - rank);
    RunnableRank copy = before ? *(at - 1) : *at;
    ETUDE_RETURN_IF_ERROR(CheckCopy(copy, world_size));
    copy.copy_of = copy.rank;
    copy.rank = rank;
    copy.notes = RunnableNotes();
    ranks.push_back(std::move(copy));
  }
  std::ranges::sort(ranks, {}, [](const RunnableRank& rank) { return *rank.rank; });
  return {};
}

Result<RunnableJob> MakeRunnableJob(std::vector<RunnableRank> ranks,
                                    const RunnableJobOptions& options) {
  return RunnableJobMaker(std::move(ranks), options).Run();
}

}  // namespace etude
