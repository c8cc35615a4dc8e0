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
#include "src/trace/simulated.h"
#include "src/trace/trace_builder.h"
#include "src/transform/astra_sim/astra_order.h"
#include "src/transform/astra_sim/astra_sim.h"
#include "src/transform/edit/contraction.h"

namespace etude {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr auto kSmallestFirst = static_cast<uint64_t>(kAstraLeastFirst);

// Returns the type that ASTRA-sim simulates.
CollectiveType SimulatedAs(const RunnablePlan& plan, CollectiveType type, bool all_types) {
  if (plan.what == RunnablePlan::What::kReplayed) {
    return all_types ? CollectiveType::kUnknown : CollectiveType::kBroadcast;
  }
  if (type == CollectiveType::kBarrier && !all_types) return CollectiveType::kAllReduce;
  if (type == CollectiveType::kReduceScatterBlock) return CollectiveType::kReduceScatter;
  return type;
}

class AstraJobMaker {
 public:
  AstraJobMaker(RunnableJob job, const ForAstraSimOptions& options)
      : options_(options), ranks_(std::move(job.ranks)), plans_(std::move(job.plans)) {
    job_.groups = std::move(job.groups);
    job_.world_size = job.world_size;
    job_.world_known = job.world_known;
    job_.missing = std::move(job.missing);
    job_.notes = job.notes;
    job_.notes.Count(RunnableNote::kRenamedGroup, job.renamed_groups);
    job_.messages = std::move(job.messages);
  }

  Result<AstraJob> Run() {
    AddWorldGroup();
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      for (uint32_t i = 0; i < ranks_[rank].nodes.size(); ++i) {
        Restrict(ranks_[rank].nodes[i], plans_[rank][i]);
      }
    }
    const AstraOrder order = OrderCommunication(ranks_, plans_);
    if (!order.first_cut.empty()) job_.messages.push_back(order.first_cut);
    CountPlans();
    for (uint32_t i = 0; i < ranks_.size(); ++i) {
      ETUDE_RETURN_IF_ERROR(MakeTrace(i, order.slots[i]));
    }
    return std::move(job_);
  }

 private:
  using What = RunnablePlan::What;

  // ASTRA-sim numbers the collectives of all ranks together with those of groups: ranks that were
  // in more groups than others would not find each other any more. Those of a listed group have
  // numbers of their own.
  void AddWorldGroup() {
    if (job_.groups.empty()) return;
    world_ = 1;
    while (job_.groups.contains(world_)) ++world_;
    std::vector<int64_t>& all = job_.groups[world_];
    for (int64_t rank = 0; rank < job_.world_size; ++rank) all.push_back(rank);
  }

  // Replays and changes what ASTRA-sim does not simulate.
  void Restrict(const RunnableNode& node, RunnablePlan& plan) {
    if (node.kind == NodeKind::kCollective) RestrictCollective(node.type, plan);
    if (plan.what == What::kRuns && plan.raised) job_.notes.Count(RunnableNote::kSizeRaised);
  }

  void RestrictCollective(CollectiveType type, RunnablePlan& plan) {
    if (options_.all_types) return;
    if (type == CollectiveType::kBarrier) plan.size = kAstraBarrierBytes;
    const bool is_matched = plan.what == What::kRuns || plan.why == RunnableNote::kNoSize;
    if (is_matched && HasRoot(type)) plan.Replay(RunnableNote::kReplayed);
    if (plan.what != What::kRuns || type != CollectiveType::kAllGather) return;
    if (plan.size >= kAstraLeastGather) return;
    job_.notes.Count(RunnableNote::kSmallGather);
    plan.size = kAstraLeastGather;
  }

  // Counts the final plans of nodes.
  void CountPlans() {
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      for (uint32_t i = 0; i < ranks_[rank].nodes.size(); ++i) {
        const RunnableNode& node = ranks_[rank].nodes[i];
        const RunnablePlan& plan = plans_[rank][i];
        if (plan.what == What::kRuns) {
          const bool is_barrier = node.type == CollectiveType::kBarrier;
          if (is_barrier && !options_.all_types) job_.notes.Count(RunnableNote::kBarrier);
          if (HasRoot(node.type) && !plan.root) job_.notes.Count(RunnableNote::kUnknownRoot);
          continue;
        }
        if (plan.why) job_.notes.Count(*plan.why);
        if (plan.what == What::kReplayed && !node.duration) {
          job_.notes.Count(RunnableNote::kUnknownTime);
        }
      }
    }
  }

  Status MakeTrace(uint32_t number, const std::vector<uint32_t>& slots);
  void AddCost(TraceBuilder& builder, NodeId node, uint64_t ops, uint64_t bytes, bool first);
  void AddComm(TraceBuilder& builder, NodeId id, const RunnableNode& node,
               const RunnablePlan& plan);
  void CountNode(const RunnableNode& node, const RunnablePlan& plan, AstraRankReport& report) const;

  const ForAstraSimOptions& options_;
  std::vector<RunnableRank> ranks_;
  std::vector<std::vector<RunnablePlan>> plans_;  // by rank and node
  int64_t world_ = 0;                             // id of the group of all ranks; 0: needs none
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
  LaneId LaneOf(const RunnableNode& node, TraceBuilder& builder) {
    if (IsCommunication(node.kind)) return LaneId::None();
    const size_t number = numbers_.emplace(node.lane, numbers_.size() + 1).first->second;
    const std::string name = number == 1 ? "host" : fmt::format("host {}", number);
    return builder.InternLane({.thread = builder.Intern(name)});
  }

 private:
  std::map<uint32_t, size_t> numbers_;  // by lane
};

Status AstraJobMaker::MakeTrace(uint32_t number, const std::vector<uint32_t>& slots) {
  const RunnableRank& rank = ranks_[number];
  const std::vector<RunnablePlan>& plans = plans_[number];
  AstraRankReport report{.rank = *rank.rank,
                         .copy_of = rank.copy_of,
                         .on_device = rank.on_device,
                         .host_time = rank.host_time};
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
  std::optional<Nanos> last_slot;  // begin of the last communication
  for (uint32_t i = 0; i < rank.nodes.size(); ++i) {
    const RunnableNode& node = rank.nodes[i];
    const RunnablePlan& plan = plans[i];
    const auto deps = contraction.Add(rank.DepsOf(i), plan.what != What::kLeftOut);
    if (plan.what == What::kLeftOut) continue;
    NodeRow row;
    row.source_id = i;
    row.kind = node.kind;
    row.place = on_host || node.on_host ? Place::kHost : Place::kDevice;
    row.name = builder.Intern(rank.names[node.name]);
    if (on_host) {
      row.lane = threads.LaneOf(node, builder);
    } else if (node.stream >= 0) {
      row.lane = builder.InternLane({.device = node.device, .stream = node.stream});
    }
    // Rounded down, so that Etude's own attributes need not repeat it.
    if (node.start && node.start->count >= 0) {
      row.start = Nanos{node.start->count / kNanosPerMicro * kNanosPerMicro};
      if (IsCommunication(node.kind)) {
        row.start = std::max(row.start, last_slot);  // in the order of the calls
        last_slot = row.start;
      }
    }
    const bool is_transfer =
        options_.transfers && IsCommunication(node.kind) && plan.what == What::kRuns;
    const std::optional<Nanos>& duration = is_transfer ? node.transfer : node.duration;
    if (duration) row.duration = clock.Round(node.lane, *duration);
    if (options_.all_types && plan.what == What::kReplayed) {
      row.duration = std::max(row.duration.value_or(Nanos{}), Nanos{1});
    } else if (options_.all_types && IsCommunication(node.kind) && row.duration) {
      row.duration = std::max(*row.duration, Nanos{1});  // 0 is unknown
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
    if (options_.compute == RunnableCompute::kFlops) AddCost(builder, id, 1, 1, /*first=*/true);
    job_.notes.Count(RunnableNote::kEmptyRank);
    ++report.compute;
  }
  ETUDE_ASSIGN_OR_RETURN(Trace trace, builder.Finish());
  job_.traces.push_back(std::move(trace));
  job_.ranks.push_back(report);
  return {};
}

void AstraJobMaker::AddCost(TraceBuilder& builder, NodeId node, uint64_t ops, uint64_t bytes,
                            bool first) {
  if (first && !options_.all_types && bytes < kSmallestFirst) {
    bytes = kSmallestFirst;
    job_.notes.Count(RunnableNote::kFirstRaised);
  }
  AddAstraAttr(builder, node, "num_ops", chakra::ValueType::kInt64, ops);
  AddAstraAttr(builder, node, "tensor_size", chakra::ValueType::kUint64, bytes);
}

void AstraJobMaker::AddComm(TraceBuilder& builder, NodeId id, const RunnableNode& node,
                            const RunnablePlan& plan) {
  Comm comm;
  comm.bytes = Bytes{plan.size};
  switch (node.kind) {
    case NodeKind::kCollective:
      comm.type = SimulatedAs(plan, node.type, options_.all_types);
      if (plan.what == What::kRuns) comm.root = plan.root;
      if (const int64_t group = plan.group != 0 ? plan.group : world_; group != 0) {
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

void AstraJobMaker::CountNode(const RunnableNode& node, const RunnablePlan& plan,
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

Result<AstraJob> ForAstraSim(RunnableJob job, const ForAstraSimOptions& options) {
  return AstraJobMaker(std::move(job), options).Run();
}

}  // namespace etude
