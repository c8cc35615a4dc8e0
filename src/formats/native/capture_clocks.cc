#include "src/formats/native/capture_clocks.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "src/trace/words/comm_backend.h"

namespace etude {
namespace {

// Bound that keeps sums of a few times in range.
constexpr int64_t kMostTime = int64_t{1} << 59;

bool IsSane(int64_t time) { return time >= -kMostTime && time <= kMostTime; }
bool IsSane(Moment moment) {
  return IsSane(moment.own) && IsSane(moment.time) && moment.own <= moment.time;
}

// Returns the shifts of a clock for an event that begins at `own` and for its end at `end`. Work in
// progress at the begin of a label ended before it.
std::pair<int64_t, int64_t> ShiftsAt(const auto& shifts, int64_t own, int64_t end) {
  const auto by = [&](auto after) { return after == shifts.begin() ? 0 : std::prev(after)->by; };
  const auto begun = std::ranges::upper_bound(shifts, own, {}, [](auto& one) { return one.from; });
  const auto ended = std::ranges::lower_bound(shifts, end, {}, [](auto& one) { return one.from; });
  return {by(begun), by(std::max(begun, ended))};
}

}  // namespace

void CaptureClocks::Add(LaneId lane, Moment moment, bool computes) {
  std::vector<Event>& events = threads_[lane].events;
  const bool follows = events.empty() || (moment.time >= events.back().moment.time &&
                                          moment.own >= events.back().moment.own);
  if (IsSane(moment) && follows) events.push_back({.moment = moment, .computes = computes});
}

// The recorder works directly after an event: a thread's own work lies before the next one.
int64_t CaptureClocks::OwnAt(const Thread& thread, int64_t time) {
  const auto next = std::ranges::upper_bound(thread.events, time, {},
                                             [](const Event& event) { return event.moment.time; });
  if (next == thread.events.end()) {
    const Moment last = thread.events.back().moment;
    return last.own + (time - last.time);
  }
  const int64_t own = next->moment.own - (next->moment.time - time);
  return next == thread.events.begin() ? own : std::max(own, std::prev(next)->moment.own);
}

void CaptureClocks::AddShift(Thread& thread, int64_t from, int64_t by) {
  if (!thread.shifts.empty()) from = std::max(from, thread.shifts.back().from);
  thread.shifts.push_back({.from = from, .by = by});
}

int64_t CaptureClocks::LastShift(const Thread& thread) {
  return thread.shifts.empty() ? 0 : thread.shifts.back().by;
}

void CaptureClocks::Begin(const AskedLabel& label) {
  const Thread& asker = threads_[label.asker];
  const int64_t asked = OwnAt(asker, label.begin.time) + LastShift(asker);
  Thread& thread = threads_[label.lane];
  const bool is_first = thread.shifts.empty();
  const int64_t begin =
      std::min(is_first ? asked : std::max(asked, thread.busy_until), label.begin.time);
  AddShift(thread, label.begin.own, begin - label.begin.own);
  thread.busy_until = begin + (label.end.own - label.begin.own);
}

void CaptureClocks::End(const AskedLabel& label) {
  Thread& asker = threads_[label.asker];
  const int64_t end = label.end.own + LastShift(threads_[label.lane]);
  const int64_t time = label.end.time;
  const std::vector<Event>& events = asker.events;
  auto next = std::ranges::upper_bound(events, time, {},
                                       [](const Event& event) { return event.moment.time; });
  // A label's end is observed when the waiting thread may already have continued.
  const int64_t seen = time - kWakesEarly.count;
  for (; next != events.begin(); --next) {
    const Event& before = *std::prev(next);
    if (next != events.end() && !before.computes &&
        next->moment.own - before.moment.own > kWakesEarly.count) {
      const int64_t own = next->moment.own - (next->moment.time - time);
      const int64_t by = std::min(end, time) - own;
      if (by <= LastShift(asker)) return;
      const int64_t from = std::clamp(own, before.moment.own + 1, next->moment.own - 1);
      AddShift(asker, from, by);
      return;
    }
    if (before.moment.time <= seen) return;
  }
}

void CaptureClocks::Move(NodeId node, TraceBuilder& builder) const {
  const auto found = threads_.find(builder.lane_id(node));
  const auto start = builder.start(node);
  if (found == threads_.end() || !start || !IsSane(start->count)) return;
  auto duration = builder.duration(node);
  if (duration && !IsSane(duration->count)) return;
  const Nanos end = *start + duration.value_or(Nanos{});
  const auto [begins, ends] = ShiftsAt(found->second.shifts, start->count, end.count);
  if (duration) duration = std::max(*duration + Nanos{ends - begins}, Nanos{});
  builder.SetTimes(node, *start + Nanos{begins}, duration, std::nullopt);
}

void CaptureClocks::Settle(std::vector<AskedLabel> labels, TraceBuilder& builder) {
  std::erase_if(labels, [&](const AskedLabel& label) {
    const auto asker = threads_.find(label.asker);
    return label.lane == label.asker || asker == threads_.end() || asker->second.events.empty() ||
           !IsSane(label.begin) || !IsSane(label.end) || label.end.own < label.begin.own;
  });
  if (labels.empty()) return;
  struct Step {
    int64_t time = 0;
    bool ends = false;
    const AskedLabel* label = nullptr;
  };
  std::vector<Step> steps;
  for (const AskedLabel& label : labels) {
    steps.push_back({.time = label.begin.time, .ends = false, .label = &label});
    steps.push_back({.time = label.end.time, .ends = true, .label = &label});
  }
  // On one thread, an event that begins at the end of another follows it.
  std::ranges::stable_sort(steps, {},
                           [](const Step& step) { return std::pair(step.time, !step.ends); });
  for (const Step& step : steps) step.ends ? End(*step.label) : Begin(*step.label);
  for (size_t i = 0; i < builder.node_count(); ++i) Move(NodeId::FromIndex(i), builder);
}

}  // namespace etude
