#include "src/sim/engine/simulator.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "src/sim/collective/collective_algorithms.h"
#include "src/sim/collective/sim_collectives.h"
#include "src/sim/collective/timed_collectives.h"
#include "src/sim/engine/rank_classes.h"
#include "src/sim/engine/shared_cores.h"
#include "src/sim/engine/sim_execution.h"
#include "src/sim/engine/sim_messages.h"
#include "src/sim/engine/sim_timeline.h"
#include "src/sim/engine/tie_watch.h"
#include "src/sim/machine/link_faults.h"
#include "src/sim/models/sim_compute_model.h"
#include "src/sim/models/sim_endpoint_model.h"
#include "src/sim/models/sim_memory_model.h"
#include "src/sim/models/sim_network_model.h"

namespace etude {
namespace {

// The event loop; dispatches events to the parts of the simulation.
class SimEngine final : private MessageListener, private NodeListener, private HandlingListener {
 public:
  SimEngine(const SimInput& input, const SimOptions& options)
      : input_(input),
        options_(options),
        context_(options.context),
        ties_(input),
        timeline_(input.class_count(), ties_),
        network_(MakeSimNetworkModel(input, timeline_, ties_)),
        compute_(MakeSimComputeModel(input.machine)),
        memory_(MakeSimMemoryModel(input.machine.memory)),
        collective_model_(MakeSimCollectiveModel(input)),
        messages_(input, timeline_, *network_, ties_, *this),
        endpoint_(MakeSimEndpointModel(input, timeline_, *this)),
        collectives_(input, *collective_model_, *endpoint_, timeline_, messages_, ties_, *this),
        execution_(input, *compute_, *memory_, timeline_, messages_, collectives_, ties_, *this) {
    if (input.machine.times == nullptr) return;
    cores_.emplace(input.machine.cores, timeline_);
    NodeListener& listener = *this;  // a private base: std::optional cannot convert to it
    timed_.emplace(input, *cores_, timeline_, listener);
    execution_.UseTimes(*cores_, *timed_);
  }

  Result<SimResult> Run() {
    execution_.Begin();
    bool stopped = false;
    for (uint64_t i = 1; !timeline_.empty() && !failed_ && !ambiguous(); ++i) {
      if (i % kEventsBetweenLooks == 0 && context_ != nullptr) {
        stopped = context_->stopped();
        if (stopped) break;
        Report();
      }
      const SimEvent event = timeline_.Take();
      if (timeline_.now() > kLongestSimulation) {
        return BadInput(RankOf(event) + "found work that takes more than three years");
      }
      Do(event);
    }
    if (failed_) return tl::unexpected<Error>(*failed_);
    std::vector<SimRankResult> ranks = execution_.TakeResults();
    std::vector<std::vector<SimCollectiveEnd>> ends =
        timed_ ? timed_->TakeEnds() : collectives_.TakeEnds();
    std::vector<std::vector<SimProgramWait>> waits = collectives_.ProgramWaits();
    for (size_t i = 0; i < ranks.size(); ++i) {
      ranks[i].collectives = std::move(ends[i]);
      ranks[i].waits = std::move(waits[i]);
    }
    return SimResult{.class_of = input_.classes.class_of,
                     .first = input_.classes.first,
                     .ranks = std::move(ranks),
                     .links = network_->Links(),
                     .events = timeline_.count(),
                     .messages = messages_.sent(),
                     .unreceived = messages_.unreceived(),
                     .time = timeline_.now(),
                     .stopped = stopped};
  }

  bool ambiguous() const { return ties_.ambiguous(); }

 private:
  static constexpr uint64_t kEventsBetweenLooks = 1 << 14;

  void Report() const {
    const double ms = static_cast<double>(timeline_.now()) / 1e6;
    context_->Progress(fmt::format("simulated {:.3f} ms: nodes", ms), execution_.nodes_done(),
                       execution_.nodes());
  }
  void Do(const SimEvent& event) {
    switch (event.kind) {
      case SimEventKind::kLocal: {
        const RankClassId rank_class = timeline_.ClassOf(event.subject);
        ties_.BeginTick(rank_class, timeline_.now(), event.planned, event.cause);
        timeline_.Run(event.subject, [&](const LocalEvent& local) { DoLocal(rank_class, local); });
        ties_.EndTick();
        break;
      }
      case SimEventKind::kArrival: messages_.Arrive(event); break;
      case SimEventKind::kLinkFree: network_->FreeLink(event); break;
      case SimEventKind::kReceived: messages_.Received(event); break;
      case SimEventKind::kCores: EndWork(event.subject); break;
    }
  }
  void EndWork(SimIndex plan) {
    for (const SharedCores::Work& work : cores_->Due(plan)) {
      if (work.is_collective) {
        timed_->End(work.subject);
      } else {
        execution_.Complete(work.rank_class, work.subject);
      }
    }
  }
  void DoLocal(RankClassId rank_class, const LocalEvent& event) {
    switch (event.kind) {
      case LocalKind::kNodeDone: execution_.Complete(rank_class, event.subject); break;
      case LocalKind::kHandled: collectives_.Handled(event); break;
      case LocalKind::kReduced: collectives_.Reduced(event); break;
      case LocalKind::kStreamless: collectives_.Streamless(event); break;
      case LocalKind::kWake: execution_.Wake(rank_class); break;
      case LocalKind::kPlanDone: collectives_.PlanWorkDone(event); break;
      case LocalKind::kCustomDone: collectives_.ProgramNodeDone(event); break;
      case LocalKind::kBusSent:
      case LocalKind::kBusCame:
      case LocalKind::kBusReduced: endpoint_->Do(rank_class, event); break;
    }
  }

  void Handled(const LocalEvent& event) override { collectives_.Handled(event); }
  void Tell(const MessageReceiver& receiver, const SimChain* chain) override {
    switch (receiver.kind) {
      case MessageReceiver::Kind::kNode:
        execution_.MessageDone(receiver.rank_class, receiver.subject);
        break;
      case MessageReceiver::Kind::kStream: collectives_.MessageCame(receiver.subject, chain); break;
      case MessageReceiver::Kind::kCustom:
        collectives_.ProgramMessageDone(receiver.subject, receiver.node, chain);
        break;
      case MessageReceiver::Kind::kPlan:
        collectives_.PlanMessageDone(receiver.subject, *chain);
        break;
      case MessageReceiver::Kind::kMembers:
        collectives_.SwitchesDone(receiver.subject, *chain);
        break;
      case MessageReceiver::Kind::kNobody:
      case MessageReceiver::Kind::kPostReceive:
      case MessageReceiver::Kind::kSend: break;
    }
  }
  void Complete(RankClassId rank_class, SimIndex node) override {
    execution_.Complete(rank_class, node);
  }
  void Fail(RankClassId rank_class, SimIndex node, std::string_view what) override {
    if (failed_) return;
    const uint64_t id = input_.ProgramOf(rank_class).source_ids[node];
    failed_ =
        Error{ErrorCode::kBadInput, fmt::format("{}: node {}: {}", NameOf(rank_class), id, what)};
  }
  std::string NameOf(RankClassId rank_class) const {
    const int64_t rank = input_.RankOf(rank_class);
    return options_.name ? options_.name(rank) : fmt::format("rank {}", rank);
  }
  // Returns "rank 3: " for the rank that planned the event; "" for a link.
  std::string RankOf(const SimEvent& event) {
    if (event.kind == SimEventKind::kLocal) return NameOf(timeline_.ClassOf(event.subject)) + ": ";
    if (event.kind != SimEventKind::kArrival) return "";
    return NameOf(messages_.SourceOf(event)) + ": ";
  }

  const SimInput& input_;
  const SimOptions& options_;
  const RunContext* const context_;
  std::optional<Error> failed_;
  TieWatch ties_;
  SimTimeline timeline_;
  const std::unique_ptr<SimNetworkModel> network_;
  const std::unique_ptr<SimComputeModel> compute_;
  const std::unique_ptr<SimMemoryModel> memory_;
  const std::unique_ptr<SimCollectiveModel> collective_model_;
  SimMessages messages_;
  const std::unique_ptr<SimEndpointModel> endpoint_;
  SimCollectives collectives_;
  std::optional<SharedCores> cores_;       // with SimMachine::times only
  std::optional<TimedCollectives> timed_;  // likewise
  SimExecution execution_;
};

}  // namespace

Status CheckMachine(const SimMachine& machine) {
  if (machine.congestion && machine.dims.size() != 1) {
    return BadInput("found a network of several dimensions, expected one with congestion");
  }
  for (const auto& [type, programs] : machine.system.programs) {
    if (machine.graph != nullptr || !OwnAlgorithm(type)) continue;
    return BadInput(
        fmt::format("found programs for {}, which require --model etude-1", Name(type)));
  }
  ETUDE_RETURN_IF_ERROR(CheckAlgorithms(machine));
  return CheckFaults(machine);
}

Result<SimResult> Simulate(const SimMachine& machine, const SimWorkload& workload,
                           const SimOptions& options) {
  if (machine.npus() != static_cast<int64_t>(workload.ranks.size())) {
    return BadInput(
        fmt::format("found {} programs for {} NPUs", workload.ranks.size(), machine.npus()));
  }
  ETUDE_RETURN_IF_ERROR(CheckMachine(machine));
  // The order of events on shared cores depends on all ranks.
  if (options.by_class && machine.times == nullptr) {
    const RankClasses classes = FindRankClasses(machine, workload);
    if (!classes.is_trivial()) {
      const SimInput input(machine, workload, classes);
      SimEngine engine(input, options);
      Result<SimResult> result = engine.Run();
      if (result && result->stopped) return result;
      const bool finished = result && std::ranges::all_of(result->ranks, &SimRankResult::finished);
      if (finished && !engine.ambiguous()) return result;
    }
  }
  const RankClasses each = EachRank(workload);
  const SimInput input(machine, workload, each);
  return SimEngine(input, options).Run();
}

}  // namespace etude
