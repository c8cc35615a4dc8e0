#include "src/sim/models/sim_endpoint_model.h"

#include "src/sim/machine/travel.h"
#include "src/sim/models/shared_bus.h"

namespace etude {
namespace {

constexpr int64_t kGroupDelay = 10;  // ns, of ASTRA-sim

class EndpointDelay final : public SimEndpointModel {
 public:
  EndpointDelay(const SimInput& input, SimTimeline& timeline)
      : delay_(input.system.endpoint_delay),
        group_delay_(input.machine.graph != nullptr ? delay_ : kGroupDelay),
        timeline_(timeline) {}

  std::string_view name() const override { return "astra-sim-2.0/endpoint-delay"; }
  void Handle(RankClassId rank_class, bool in_group, const Handling& /*handling*/,
              const LocalEvent& handled) override {
    timeline_.PlanLocal(rank_class, in_group ? group_delay_ : delay_, handled);
  }
  void Do(RankClassId /*rank_class*/, const LocalEvent& /*event*/) override {}

 private:
  const int64_t delay_;  // ns
  const int64_t group_delay_;
  SimTimeline& timeline_;
};

// Collectives of groups do not use the bus.
class SharedBusEndpoint final : public SimEndpointModel {
 public:
  SharedBusEndpoint(const SimInput& input, SimTimeline& timeline, HandlingListener& listener)
      : timeline_(timeline), buses_(*input.system.shared_bus, input, timeline, listener) {}

  std::string_view name() const override { return "astra-sim-2.0/shared-bus"; }
  void Handle(RankClassId rank_class, bool in_group, const Handling& handling,
              const LocalEvent& handled) override {
    if (in_group) return timeline_.PlanLocal(rank_class, kGroupDelay, handled);
    buses_.Carry(rank_class, handling, handled);
  }
  void Do(RankClassId rank_class, const LocalEvent& event) override {
    buses_.Do(rank_class, event);
  }

 private:
  SimTimeline& timeline_;
  SharedBuses buses_;
};

}  // namespace

int64_t ReductionTime(const SystemModel& system, int64_t bytes) {
  const double bytes_per_second = system.memory_bandwidth * 1e9;
  if (bytes_per_second <= 0) return 0;
  return 3 * WholeNanos(static_cast<double>(bytes) / bytes_per_second * 1e9);
}

std::unique_ptr<SimEndpointModel> MakeSimEndpointModel(const SimInput& input, SimTimeline& timeline,
                                                       HandlingListener& listener) {
  if (input.system.shared_bus) {
    return std::make_unique<SharedBusEndpoint>(input, timeline, listener);
  }
  return std::make_unique<EndpointDelay>(input, timeline);
}

}  // namespace etude
