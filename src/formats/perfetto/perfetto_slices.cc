#include "src/formats/perfetto/perfetto_slices.h"

#include <algorithm>
#include <string>
#include <utility>

namespace etude::perfetto {

void Slices::Add(TrackEvent event) {
  if (event.type == EventType::kEnd && !events_.empty()) {
    const TrackEvent& last = events_.back();
    event.ends_at_once = last.type == EventType::kBegin && last.track == event.track &&
                         last.time == event.time && last.order + 1 == event.order;
  }
  events_.push_back(event);
}

// Sorts events by track and time. If a track's events are in the order of time, ends and begins at
// one time keep their order. Otherwise, as with writers that write all begins before all ends, ends
// come before begins at one time.
void Slices::Sort() {
  std::ranges::stable_sort(events_, {}, &TrackEvent::track);
  for (size_t begin = 0; begin < events_.size();) {
    size_t end = begin + 1;
    bool ordered = true;
    while (end < events_.size() && events_[end].track == events_[begin].track) {
      ordered = ordered && events_[end - 1].time <= events_[end].time;
      ++end;
    }
    if (!ordered) {
      const auto rank = [](const TrackEvent& event) {
        const bool first = event.type == EventType::kEnd && !event.ends_at_once;
        return std::pair(event.time, first ? 0 : 1);
      };
      std::stable_sort(events_.begin() + static_cast<ptrdiff_t>(begin),
                       events_.begin() + static_cast<ptrdiff_t>(end),
                       [&](const TrackEvent& a, const TrackEvent& b) { return rank(a) < rank(b); });
    }
    begin = end;
  }
}

uint64_t Slices::Pair() {
  Sort();
  std::vector<size_t> open;
  uint64_t unpaired = 0;
  for (size_t i = 0; i < events_.size(); ++i) {
    if (i != 0 && events_[i].track != events_[i - 1].track) open.clear();
    if (events_[i].type == EventType::kBegin) {
      open.push_back(i);
    } else if (events_[i].type == EventType::kInstant) {
      continue;
    } else if (open.empty()) {
      ++unpaired;
    } else {
      TrackEvent& begin = events_[open.back()];
      begin.end = events_[i].time;
      begin.has_end = true;
      if (events_[i].args) begin.args = Joined(begin.args, events_[i].args);
      open.pop_back();
    }
  }
  std::erase_if(events_, [](const TrackEvent& event) { return event.type == EventType::kEnd; });
  std::ranges::sort(events_, {},
                    [](const TrackEvent& event) { return std::pair(event.time, event.order); });
  return unpaired;
}

StringId Slices::Joined(StringId a, StringId b) {
  if (!a) return b;
  return strings_.Intern(std::string(strings_.Get(a)) + ", " + std::string(strings_.Get(b)));
}

}  // namespace etude::perfetto
