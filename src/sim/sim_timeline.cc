#include "src/sim/sim_timeline.h"

#include <algorithm>

namespace etude {

void SimTimeline::PlanLocal(SimIndex rank, int64_t delay, const LocalEvent& event) {
  const int64_t time = now() + std::min(delay, kLongest);
  if (delay == 0) ties_.PlansNow();
  const Local local{.event = event, .cause = ties_.cause()};
  for (SimIndex i = first_tick_[rank]; i != kNoIndex; i = ticks_[i].next) {
    if (ticks_[i].time == time) return locals_.Push(ticks_[i].queue, local);
  }
  const SimIndex tick = ticks_.Add({.time = time, .rank = rank, .next = first_tick_[rank]});
  locals_.Push(ticks_[tick].queue, local);
  first_tick_[rank] = tick;
  Plan(time, SimEventKind::kLocal, tick);
}

}  // namespace etude
