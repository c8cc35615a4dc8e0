#include "src/sim/sim_timeline.h"

#include <algorithm>

namespace etude {

void SimTimeline::PlanLocal(SimIndex rank, int64_t delay, const LocalEvent& event) {
  const int64_t time = now() + std::min(delay, kLongest);
  const SimIndex link = links_.Add({.event = event});
  for (Tick& tick : ticks_[rank]) {
    if (tick.time != time) continue;
    if (tick.first == kNoIndex) {
      tick.first = link;
    } else {
      links_[tick.last].next = link;
    }
    tick.last = link;
    return;
  }
  ticks_[rank].push_back({.time = time, .first = link, .last = link});
  Plan(time, SimEventKind::kLocal, rank);
}

std::optional<LocalEvent> SimTimeline::NextLocal(SimIndex rank) {
  std::vector<Tick>& ticks = ticks_[rank];
  const auto tick = std::ranges::find(ticks, now(), &Tick::time);
  if (tick->first == kNoIndex) {
    *tick = ticks.back();
    ticks.pop_back();
    return std::nullopt;
  }
  const Link link = links_.Take(tick->first);
  tick->first = link.next;
  return link.event;
}

}  // namespace etude
