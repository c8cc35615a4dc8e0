#include "src/sim/variants/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "src/sim/network/network_graph.h"

namespace etude {
namespace {

constexpr double kFaster = 1 + kSensitivityStep;
// A dimension with more kinds of links is scaled as a whole.
constexpr size_t kMostKinds = 12;
// 1 % of a shorter time is less than a nanosecond.
constexpr int64_t kLeastNanos = 100;

class FasterTimes final : public CollectiveTimes {
 public:
  explicit FasterTimes(std::shared_ptr<const CollectiveTimes> times) : times_(std::move(times)) {}

  std::string_view name() const override { return times_->name(); }
  Result<CommunicationTime> TimeOf(CollectiveType type, std::span<const int64_t> ranks,
                                   int64_t bytes) const override {
    return Faster(times_->TimeOf(type, ranks, bytes));
  }
  Result<CommunicationTime> TimeOfMessage(int64_t from, int64_t to, int64_t bytes) const override {
    return Faster(times_->TimeOfMessage(from, to, bytes));
  }

 private:
  static Result<CommunicationTime> Faster(Result<CommunicationTime> time) {
    if (time) time->nanos = static_cast<int64_t>(static_cast<double>(time->nanos) / kFaster);
    return time;
  }

  std::shared_ptr<const CollectiveTimes> times_;
};

// A machine that is faster in one respect.
struct Variant {
  Sensitivity result;
  SimMachine machine;
};

class Variants {
 public:
  explicit Variants(const SimMachine& machine) : machine_(machine) {}

  std::vector<Variant> All() {
    SimMachine& computes = Add("computations", "compute");
    for (int64_t rank = 0; rank < machine_.npus(); ++rank) {
      const auto [factor, is_new] = computes.stragglers.try_emplace(rank, 1.0);
      factor->second /= kFaster;
    }
    if (machine_.times != nullptr) {
      AddTimes();
      return std::move(all_);
    }
    for (size_t i = 0; i < machine_.dims.size(); ++i) AddDim(i);
    if (machine_.system.roofline) Add("peak", "peak").system.peak *= kFaster;
    // Additions of etude-1 take time with it, too.
    const bool has_additions = machine_.graph != nullptr && machine_.system.memory_bandwidth > 0;
    if (machine_.system.roofline || has_additions) {
      Add("memory bandwidth", "memory_bandwidth").system.memory_bandwidth *= kFaster;
    }
    if (machine_.system.endpoint_delay >= kLeastNanos) {
      int64_t& delay = Add("endpoint delay", "endpoint_delay").system.endpoint_delay;
      delay = std::llround(static_cast<double>(delay) / kFaster);
    }
    if (machine_.memory.kind != RemoteMemoryKind::kNone) {
      Add("bandwidth of remote memory", "remote_bandwidth").memory.bandwidth *= kFaster;
    }
    return std::move(all_);
  }

 private:
  void AddTimes() {
    SimMachine& faster = Add("communications", "communication");
    if (machine_.has_recorded_times()) {
      faster.times = std::make_shared<RecordedCommunications>(1 / kFaster);
    } else {
      faster.times = std::make_shared<FasterTimes>(machine_.times);
    }
    if (machine_.cores) *Add("cores", "cores").cores *= kFaster;
  }

  SimMachine& Add(std::string what, std::string key) {
    return all_
        .emplace_back(Variant{.result = {.what = std::move(what), .key = std::move(key)},
                              .machine = machine_})
        .machine;
  }

  void AddDim(size_t i) {
    using LinkKind = NetworkGraph::LinkKind;
    std::vector<LinkKind> kinds;
    if (machine_.graph != nullptr) kinds = machine_.graph->KindsOf(i);
    if (kinds.size() > kMostKinds || kinds.size() == 1 || machine_.graph == nullptr) {
      SimMachine& wide =
          Add(fmt::format("bandwidth of dimension {}", i), fmt::format("bandwidth_{}", i));
      wide.dims[i].bandwidth *= kFaster;
      if (machine_.graph != nullptr) wide.graph = Graph(kinds, kFaster, 1);
      SimMachine& quick =
          Add(fmt::format("latency of dimension {}", i), fmt::format("latency_{}", i));
      quick.dims[i].latency /= kFaster;
      if (machine_.graph != nullptr) quick.graph = Graph(kinds, 1, 1 / kFaster);
      return;
    }
    for (size_t k = 0; k < kinds.size(); ++k) {
      const std::string links = fmt::format("of dimension {}, links of {:.6g} GB/s, {:.6g} ns", i,
                                            kinds[k].bandwidth, kinds[k].latency);
      Add("bandwidth " + links, fmt::format("bandwidth_{}_{}", i, k)).graph =
          Graph({kinds[k]}, kFaster, 1);
      Add("latency " + links, fmt::format("latency_{}_{}", i, k)).graph =
          Graph({kinds[k]}, 1, 1 / kFaster);
    }
  }

  std::shared_ptr<const NetworkGraph> Graph(const std::vector<NetworkGraph::LinkKind>& kinds,
                                            double bandwidth, double latency) const {
    NetworkGraph graph = *machine_.graph;
    // From the shortest latency, so that no link becomes one of a kind that is still to come.
    for (const NetworkGraph::LinkKind& kind : kinds) graph.Scale(kind, bandwidth, latency);
    return std::make_shared<const NetworkGraph>(std::move(graph));
  }

  const SimMachine& machine_;
  std::vector<Variant> all_;
};

}  // namespace

Result<std::vector<Sensitivity>> SensitivitiesOf(const SimMachine& machine,
                                                 const SimWorkload& workload,
                                                 const RunContext& context) {
  std::vector<Variant> variants = Variants(machine).All();
  std::vector<Sensitivity> found;
  RunContext quiet = context;
  quiet.progress = nullptr;
  for (Variant& variant : variants) {
    context.Progress("simulate with 1 % more: machines", found.size(), variants.size());
    ETUDE_ASSIGN_OR_RETURN(const SimResult result,
                           Simulate(variant.machine, workload, {.context = &quiet}));
    if (result.stopped) break;
    for (const SimRankResult& rank : result.ranks) {
      variant.result.time = std::max(variant.result.time, rank.end);
    }
    found.push_back(std::move(variant.result));
  }
  return found;
}

}  // namespace etude
