#include "src/sim/sim_timeline.h"

#include <algorithm>

namespace etude {

void SimTimeline::PlanLocal(SimIndex rank, int64_t delay, const LocalEvent& event) {
  const int64_t time = now() + std::min(delay, kLongest);
  LocalEvent planned = event;
  planned.planned = now();
  planned.cause = ties_.cause();
  if (delay == 0) ties_.PlansNow();
  for (Tick& tick : ticks_[rank]) {
    if (tick.time != time) continue;
    tick.events.push_back(planned);
    return;
  }
  ticks_[rank].push_back({.time = time, .events = {planned}});
  Plan(time, SimEventKind::kLocal, rank);
}

std::optional<LocalEvent> SimTimeline::NextLocal(SimIndex rank) {
  std::vector<Tick>& ticks = ticks_[rank];
  const auto tick = std::ranges::find(ticks, now(), &Tick::time);
  if (tick->events.empty()) {
    ticks.erase(tick);
    return std::nullopt;
  }
  const LocalEvent event = tick->events.front();
  tick->events.pop_front();
  return event;
}

}  // namespace etude
