#include "src/sim/engine/sim_timeline.h"

#include <algorithm>

namespace etude {

void SimTimeline::PlanLocal(RankClassId rank_class, int64_t delay, const LocalEvent& event) {
  const int64_t time = now() + std::min(delay, kLongest);
  if (delay == 0) ties_.PlansNow();
  SimIndex& first = first_tick_[rank_class.index()];
  const Local local{.event = event, .cause = ties_.cause()};
  for (SimIndex i = first; i != kNoIndex; i = ticks_[i].next) {
    if (ticks_[i].time == time) return locals_.Push(ticks_[i].queue, local);
  }
  const SimIndex tick = ticks_.Add({.time = time, .rank_class = rank_class, .next = first});
  locals_.Push(ticks_[tick].queue, local);
  first = tick;
  Plan(time, SimEventKind::kLocal, tick);
}

}  // namespace etude
