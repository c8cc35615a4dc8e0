#include "src/sim/sim_timeline.h"

#include <algorithm>

namespace etude {

void SimTimeline::PlanLocal(SimIndex rank, int64_t delay, const LocalEvent& event) {
  const int64_t time = now() + std::min(delay, kLongest);
  if (delay == 0) ties_.PlansNow();
  const SimIndex link = links_.Add({.event = event, .cause = ties_.cause()});
  for (SimIndex i = first_tick_[rank]; i != kNoIndex; i = ticks_[i].next) {
    Tick& tick = ticks_[i];
    if (tick.time != time) continue;
    if (tick.first == kNoIndex) {
      tick.first = link;
    } else {
      links_[tick.last].next = link;
    }
    tick.last = link;
    return;
  }
  const SimIndex tick = ticks_.Add(
      {.time = time, .rank = rank, .first = link, .last = link, .next = first_tick_[rank]});
  first_tick_[rank] = tick;
  Plan(time, SimEventKind::kLocal, tick);
}

}  // namespace etude
