#include "src/transform/astra_sim/for_astra_sim.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "src/base/units.h"
#include "src/trace/job/rank_set.h"
#include "src/trace/simulated.h"
#include "src/trace/trace_builder.h"
#include "src/transform/astra_sim/astra_groups.h"
#include "src/transform/astra_sim/astra_match.h"
#include "src/transform/astra_sim/astra_order.h"
#include "src/transform/astra_sim/astra_sim.h"
#include "src/transform/edit/contraction.h"

namespace etude {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr auto kSmallestFirst = static_cast<uint64_t>(kAstraLeastFirst);

// Returns the type for ASTRA-sim.
CollectiveType SimulatedAs(const AstraPlan& plan, CollectiveType type, bool all_types) {
  if (plan.what == AstraPlan::What::kReplayed) {
    return all_types ? CollectiveType::kUnknown : CollectiveType::kBroadcast;
  }
  if (type == CollectiveType::kBarrier) return CollectiveType::kAllReduce;
  if (type == CollectiveType::kReduceScatterBlock) return CollectiveType::kReduceScatter;
  return type;
}

// Returns ASTRA-sim's size: for an all-gather the input of each rank, for all others the whole
// buffer that a rank puts in.
std::optional<int64_t> SizeOf(const AstraNode& node, int64_t group_size) {
  if (node.type == CollectiveType::kBarrier) return kAstraBarrierBytes;
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

class JobMaker {
 public:
  JobMaker(std::vector<AstraRank> ranks, const ForAstraSimOptions& options)
      : options_(options), ranks_(std::move(ranks)) {}

  Result<AstraJob> Run() {
    ETUDE_RETURN_IF_ERROR(SortRanks());
    ETUDE_RETURN_IF_ERROR(FindWorld());
    ETUDE_RETURN_IF_ERROR(FindMissing());
    const bool is_filled =
        std::ranges::any_of(ranks_, [](const AstraRank& rank) { return rank.copy_of.has_value(); });
    TakeCallers(ranks_, job_.world_known && job_.missing.empty() && !is_filled);
    for (const AstraRank& rank : ranks_) {
      job_.notes.Add(rank.notes);
      plans_.emplace_back(rank.nodes.size());
      groups_.emplace_back(rank, job_.world_size);
    }
    group_ids_ = NumberGroups(ranks_, groups_, job_.world_size);
    job_.groups = group_ids_.groups;
    job_.notes.Count(AstraNote::kRenamedGroup, group_ids_.renamed);
    for (uint32_t i = 0; i < ranks_.size(); ++i) PlanRank(i);
    MatchAstraPlans(ranks_, options_.all_types ? 0 : kAstraLeastGather, plans_, job_);
    const AstraOrder order = OrderCommunication(ranks_, plans_);
    if (!order.first_cut.empty()) job_.messages.push_back(order.first_cut);
    CountPlans();
    for (uint32_t i = 0; i < ranks_.size(); ++i) {
      ETUDE_RETURN_IF_ERROR(MakeTrace(i, order.slots[i]));
    }
    return std::move(job_);
  }

 private:
  using What = AstraPlan::What;

  Status SortRanks() {
    if (ranks_.empty()) return BadInput("found no trace, expected at least one");
    if (ranks_.size() == 1 && !ranks_.front().rank) ranks_.front().rank = 0;
    for (const AstraRank& rank : ranks_) {
      if (!rank.rank) return BadInput("found a trace of unknown rank among several");
      if (*rank.rank < 0 || *rank.rank >= kMostListedRanks) {
        return BadInput(
            fmt::format("found rank {}, expected 0 to {}", *rank.rank, kMostListedRanks - 1));
      }
    }
    std::ranges::sort(ranks_, {}, [](const AstraRank& rank) { return *rank.rank; });
    const auto same =
        std::ranges::adjacent_find(ranks_, {}, [](const AstraRank& rank) { return *rank.rank; });
    if (same == ranks_.end()) return {};
    return BadInput(fmt::format("found two traces of rank {}, expected one", *same->rank));
  }

  // Finds the number of ranks: the max mentioned in the traces.
  Status FindWorld() {
    int64_t world = 0;
    const auto at_least = [&](int64_t count) {
      if (count <= kMostListedRanks) world = std::max(world, count);
    };
    for (const AstraRank& rank : ranks_) {
      at_least(rank.world_size.value_or(0));
      for (const AstraGroup& group : rank.groups) {
        at_least(group.size.value_or(0));
        if (!group.ranks) continue;
        for (const int64_t member : *group.ranks) at_least(std::min(member, kMostListedRanks) + 1);
      }
      for (const AstraNode& node : rank.nodes) at_least(node.group_size.value_or(0));
    }
    job_.world_known = world > 0 || ranks_.size() > 1 || options_.ranks > 0;
    for (const AstraRank& rank : ranks_) at_least(*rank.rank + 1);
    if (options_.ranks > kMostListedRanks ||
        (options_.ranks > 0 && world > 1 && options_.ranks != world)) {
      return BadInput(
          fmt::format("found a job of {} ranks, expected {} as asked", world, options_.ranks));
    }
    job_.world_size = std::max(world, options_.ranks);
    return {};
  }

  Status FindMissing() {
    const size_t recorded = ranks_.size();
    for (int64_t rank = 0; rank < job_.world_size; ++rank) {
      const auto known = std::span(ranks_).first(recorded);
      const auto at =
          std::ranges::lower_bound(known, rank, {}, [](const AstraRank& one) { return *one.rank; });
      if (at != known.end() && *at->rank == rank) continue;
      if (!options_.fill_ranks) {
        job_.missing.push_back(rank);
        continue;
      }
      const bool before =
          at != known.begin() && (at == known.end() || rank - *(at - 1)->rank <= *at->rank - rank);
      AstraRank copy = before ? *(at - 1) : *at;
      ETUDE_RETURN_IF_ERROR(CheckCopy(copy));
      copy.copy_of = copy.rank;
      copy.rank = rank;
      copy.notes = AstraNotes();
      ranks_.push_back(std::move(copy));
    }
    std::ranges::sort(ranks_, {}, [](const AstraRank& rank) { return *rank.rank; });
    return {};
  }

  // Only uniform work of all ranks can be copied.
  Status CheckCopy(const AstraRank& rank) const {
    const AstraGroups groups(rank, job_.world_size);
    for (const AstraNode& node : rank.nodes) {
      if (node.kind == NodeKind::kSend || node.kind == NodeKind::kRecv) {
        return BadInput(fmt::format(
            "cannot fill in ranks: rank {} sends to or receives from one of its own", *rank.rank));
      }
      if (node.kind != NodeKind::kCollective) continue;
      const AstraMembers members = groups.MembersOf(node);
      if (members.ranks != nullptr) {
        return BadInput(fmt::format(
            "cannot fill in ranks: rank {} is in a group of {} ranks that other ranks are not in",
            *rank.rank, members.size));
      }
    }
    return {};
  }

  void PlanRank(uint32_t rank) {
    for (uint32_t i = 0; i < ranks_[rank].nodes.size(); ++i) {
      const AstraNode& node = ranks_[rank].nodes[i];
      AstraPlan& plan = plans_[rank][i];
      if (node.kind == NodeKind::kCollective) PlanCollective(rank, node, plan);
      if (node.kind == NodeKind::kSend || node.kind == NodeKind::kRecv) {
        PlanMessage(rank, node, plan);
      }
    }
  }

  void PlanCollective(uint32_t rank, const AstraNode& node, AstraPlan& plan) const {
    const AstraMembers members = groups_[rank].MembersOf(node);
    if (members.size == 1 && job_.world_known) return plan.LeaveOut(AstraNote::kOneRank);
    plan.size = std::max<int64_t>(SizeOf(node, std::max<int64_t>(members.size, 1)).value_or(0), 0);
    if (members.size == 0) return plan.Replay(AstraNote::kUnknownGroup);
    if (members.ranks != nullptr) plan.group = group_ids_.ids[rank][node.group];
    if (node.type == CollectiveType::kUnknown) return plan.Replay(AstraNote::kUnknownType);
    if (!HasRoot(node.type)) return;
    if (!options_.all_types) return plan.Replay(AstraNote::kReplayed);
    if (node.root && *node.root >= 0 && *node.root < members.size) plan.root = node.root;
  }

  void PlanMessage(uint32_t rank, const AstraNode& node, AstraPlan& plan) const {
    const int64_t peer = node.peer.value_or(-1);
    if (peer < 0 || peer >= job_.world_size || peer == *ranks_[rank].rank) {
      return plan.LeaveOut(AstraNote::kNoPeer);
    }
    plan.peer = peer;
    plan.size = node.bytes_in.value_or(node.bytes_out.value_or(0));
  }

  // Counts the final plans of nodes.
  void CountPlans() {
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      for (uint32_t i = 0; i < ranks_[rank].nodes.size(); ++i) {
        const AstraNode& node = ranks_[rank].nodes[i];
        const AstraPlan& plan = plans_[rank][i];
        if (plan.what == What::kRuns) {
          if (node.type == CollectiveType::kBarrier) job_.notes.Count(AstraNote::kBarrier);
          if (HasRoot(node.type) && !plan.root) job_.notes.Count(AstraNote::kUnknownRoot);
          continue;
        }
        if (plan.why) job_.notes.Count(*plan.why);
        if (plan.what == What::kReplayed && !node.duration) {
          job_.notes.Count(AstraNote::kUnknownTime);
        }
      }
    }
  }

  Status MakeTrace(uint32_t number, const std::vector<uint32_t>& slots);
  void AddCost(TraceBuilder& builder, NodeId node, uint64_t ops, uint64_t bytes, bool first);
  void AddComm(TraceBuilder& builder, NodeId id, const AstraNode& node, const AstraPlan& plan);
  void CountNode(const AstraNode& node, const AstraPlan& plan, AstraRankReport& report) const;

  const ForAstraSimOptions& options_;
  std::vector<AstraRank> ranks_;
  std::vector<std::vector<AstraPlan>> plans_;  // by rank and node
  std::vector<AstraGroups> groups_;            // by rank
  AstraGroupIds group_ids_;
  AstraJob job_;
};

// Rounds to whole microseconds such that the sum over a lane stays right: the remainder goes to the
// lane's next node.
class LaneClock {
 public:
  Nanos Round(uint32_t lane, Nanos duration) {
    int64_t& rest = rest_[lane];
    const Nanos exact = Nanos{rest} + duration;
    const int64_t micros = (exact + Nanos{kNanosPerMicro / 2}).count / kNanosPerMicro;
    rest = exact.count - micros * kNanosPerMicro;
    return Nanos{micros * kNanosPerMicro};
  }

 private:
  std::map<uint32_t, int64_t> rest_;
};

// Computing threads, numbered in the order of their first nodes: their recorded names differ
// between equal ranks.
class HostThreads {
 public:
  LaneId LaneOf(const AstraNode& node, TraceBuilder& builder) {
    if (IsCommunication(node.kind)) return LaneId::None();
    const size_t number = numbers_.emplace(node.lane, numbers_.size() + 1).first->second;
    const std::string name = number == 1 ? "host" : fmt::format("host {}", number);
    return builder.InternLane({.thread = builder.Intern(name)});
  }

 private:
  std::map<uint32_t, size_t> numbers_;  // by lane
};

Status JobMaker::MakeTrace(uint32_t number, const std::vector<uint32_t>& slots) {
  const AstraRank& rank = ranks_[number];
  const std::vector<AstraPlan>& plans = plans_[number];
  AstraRankReport report{.rank = *rank.rank, .copy_of = rank.copy_of, .host_time = rank.host_time};
  // A communication node comes after the previous one: ASTRA-sim would pick any ready one.
  std::vector<uint32_t> slot_before(rank.nodes.size(), kNone);
  for (size_t i = 1; i < slots.size(); ++i) slot_before[slots[i]] = slots[i - 1];

  TraceBuilder builder;
  TraceInfo& info = builder.info();
  info.SetFormat(TraceFormat::kChakra);
  info.traits.exclusive_durations = true;
  info.rank = rank.rank;
  info.world_size = job_.world_size;
  const bool on_host = options_.host_threads && !rank.on_device;
  if (on_host) StateHostComputes(builder);
  HostThreads threads;
  Contraction contraction;
  LaneClock clock;
  for (uint32_t i = 0; i < rank.nodes.size(); ++i) {
    const AstraNode& node = rank.nodes[i];
    const AstraPlan& plan = plans[i];
    const auto deps = contraction.Add(rank.DepsOf(i), plan.what != What::kLeftOut);
    if (plan.what == What::kLeftOut) continue;
    NodeRow row;
    row.source_id = i;
    row.kind = node.kind;
    row.place = on_host ? Place::kHost : Place::kDevice;
    row.name = builder.Intern(rank.names[node.name]);
    if (on_host) {
      row.lane = threads.LaneOf(node, builder);
    } else if (node.stream >= 0) {
      row.lane = builder.InternLane({.device = node.device, .stream = node.stream});
    }
    // Rounded down, so that Etude's own attributes need not repeat it.
    if (node.start && node.start->count >= 0) {
      row.start = Nanos{node.start->count / kNanosPerMicro * kNanosPerMicro};
    }
    if (node.duration) row.duration = clock.Round(node.lane, *node.duration);
    if (options_.all_types && plan.what == What::kReplayed) {
      row.duration = std::max(row.duration.value_or(Nanos{}), Nanos{1});
    }
    const NodeId id = builder.AddNode(row);
    for (const uint32_t dep : deps) builder.AddDep(id, uint64_t{dep}, DepKind::kData);
    const uint32_t before = slot_before[i];
    if (before != kNone && std::ranges::count(deps, before) == 0) {
      builder.AddDep(id, uint64_t{before}, DepKind::kData);
    }
    if (node.ops != 0) {
      AddCost(builder, id, node.ops, node.bytes, deps.empty() && before == kNone);
    }
    AddComm(builder, id, node, plan);
    CountNode(node, plan, report);
  }
  if (builder.node_count() == 0) {
    // ASTRA-sim aborts on a rank without nodes.
    const NodeId id = builder.AddNode({.kind = NodeKind::kCompute,
                                       .place = on_host ? Place::kHost : Place::kDevice,
                                       .name = builder.Intern("nothing"),
                                       .duration = Nanos{0}});
    if (options_.compute == AstraCompute::kFlops) AddCost(builder, id, 1, 1, /*first=*/true);
    job_.notes.Count(AstraNote::kEmptyRank);
    ++report.compute;
  }
  ETUDE_ASSIGN_OR_RETURN(Trace trace, builder.Finish());
  job_.traces.push_back(std::move(trace));
  job_.ranks.push_back(report);
  return {};
}

void JobMaker::AddCost(TraceBuilder& builder, NodeId node, uint64_t ops, uint64_t bytes,
                       bool first) {
  if (first && !options_.all_types && bytes < kSmallestFirst) {
    bytes = kSmallestFirst;
    job_.notes.Count(AstraNote::kFirstRaised);
  }
  AddAstraAttr(builder, node, "num_ops", chakra::ValueType::kInt64, ops);
  AddAstraAttr(builder, node, "tensor_size", chakra::ValueType::kUint64, bytes);
}

void JobMaker::AddComm(TraceBuilder& builder, NodeId id, const AstraNode& node,
                       const AstraPlan& plan) {
  Comm comm;
  comm.bytes = Bytes{plan.size};
  switch (node.kind) {
    case NodeKind::kCollective:
      comm.type = SimulatedAs(plan, node.type, options_.all_types);
      if (plan.what == What::kRuns) comm.root = plan.root;
      if (const int64_t group = plan.group != 0 ? plan.group : group_ids_.world; group != 0) {
        comm.group = builder.Intern(std::to_string(group));
      }
      break;
    case NodeKind::kSend:
    case NodeKind::kRecv: {
      const bool sends = node.kind == NodeKind::kSend;
      const int64_t own = *builder.info().rank;
      comm.src = sends ? own : plan.peer;
      comm.dst = sends ? plan.peer : own;
      comm.tag = plan.tag;
      break;
    }
    default: return;
  }
  builder.SetComm(id, comm);
}

void JobMaker::CountNode(const AstraNode& node, const AstraPlan& plan,
                         AstraRankReport& report) const {
  switch (node.kind) {
    case NodeKind::kCollective: ++report.collectives; break;
    case NodeKind::kSend: ++report.sends; break;
    case NodeKind::kRecv: ++report.recvs; break;
    default:
      ++report.compute;
      report.compute_time = report.compute_time + node.duration.value_or(Nanos{});
      return;
  }
  report.comm_bytes = report.comm_bytes + Bytes{plan.size};
}

}  // namespace

Result<AstraJob> ForAstraSim(std::vector<AstraRank> ranks, const ForAstraSimOptions& options) {
  return JobMaker(std::move(ranks), options).Run();
}

}  // namespace etude
