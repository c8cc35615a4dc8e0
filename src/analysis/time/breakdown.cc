#include "src/analysis/time/breakdown.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "src/base/container/intervals.h"
#include "src/run/activity.h"
#include "src/run/calls/callers.h"
#include "src/run/waits/host_times.h"

namespace etude {
namespace {

struct Work {
  Interval time;
  Activity activity = Activity::kNone;
  std::optional<Nanos> launched;
  LaneId lane;
};

// Times of each activity.
struct Busy {
  TimeSet compute;
  TimeSet communication;
  TimeSet copies;
};

// Gaps by reason.
struct Gaps {
  TimeSet host_wait;
  TimeSet kernel_wait;
  TimeSet other;
};

// Computes the shares of any window.
class Shares {
 public:
  Shares(Busy busy, std::optional<Gaps> gaps)
      : busy_(std::move(busy)),
        exposed_communication_(busy_.communication.Without(busy_.compute)),
        exposed_copies_(busy_.copies.Without(busy_.compute.Or(busy_.communication))),
        all_(busy_.compute.Or(busy_.communication).Or(busy_.copies)),
        gaps_(std::move(gaps)) {}

  TimeShares Of(const Interval& window) const {
    TimeShares shares{.window = window.length(),
                      .compute = busy_.compute.Within(window),
                      .communication = busy_.communication.Within(window),
                      .exposed_communication = exposed_communication_.Within(window),
                      .copies = busy_.copies.Within(window),
                      .exposed_copies = exposed_copies_.Within(window),
                      .idle = window.length() - all_.Within(window),
                      .reasons = std::nullopt};
    if (gaps_) {
      shares.reasons = IdleReasons{.host_wait = gaps_->host_wait.Within(window),
                                   .kernel_wait = gaps_->kernel_wait.Within(window),
                                   .other = gaps_->other.Within(window)};
    }
    return shares;
  }

 private:
  Busy busy_;
  TimeSet exposed_communication_;
  TimeSet exposed_copies_;
  TimeSet all_;
  std::optional<Gaps> gaps_;
};

Busy BusyTimes(const std::vector<Work>& work) {
  std::vector<Interval> compute, communication, copies;
  for (const Work& one : work) {
    switch (one.activity) {
      case Activity::kCompute: compute.push_back(one.time); break;
      case Activity::kCommunication: communication.push_back(one.time); break;
      case Activity::kCopy: copies.push_back(one.time); break;
      case Activity::kNone: break;
    }
  }
  return {TimeSet(std::move(compute)), TimeSet(std::move(communication)),
          TimeSet(std::move(copies))};
}

// Finds the gaps within `span` without any of `work`, which is in order of time. The first work
// after a gap determines its reason; after the last work nothing was launched.
Gaps FindGaps(const std::vector<Work>& work, const Interval& span) {
  std::vector<Interval> host_wait, kernel_wait, other;
  Nanos covered = span.begin;
  for (const Work& one : work) {
    if (one.time.begin > covered) {
      const Interval gap{covered, one.time.begin};
      if (one.launched && *one.launched > gap.begin) {
        host_wait.push_back(gap);
      } else if (one.launched && gap.length() < kKernelGap) {
        kernel_wait.push_back(gap);
      } else {
        other.push_back(gap);
      }
    }
    covered = std::max(covered, one.time.end);
  }
  host_wait.push_back({covered, span.end});
  return {TimeSet(std::move(host_wait)), TimeSet(std::move(kernel_wait)),
          TimeSet(std::move(other))};
}

Interval WindowOf(const std::vector<Work>& work) {
  Interval window = work.front().time;
  for (const Work& one : work) window.end = std::max(window.end, one.time.end);
  return window;
}

std::vector<Breakdown::Stream> Streams(const Trace& trace, const std::vector<Work>& work) {
  std::map<std::tuple<std::string_view, int32_t, int32_t>, std::vector<Work>> by_stream;
  for (const Work& one : work) {
    if (!one.lane) continue;
    const Lane& lane = trace.lane(one.lane);
    by_stream[{trace.text(lane.process), lane.device, lane.stream}].push_back(one);
  }
  std::vector<Breakdown::Stream> streams;
  for (const auto& [key, own] : by_stream) {
    const Interval window = WindowOf(own);
    streams.push_back({.process = std::get<0>(key),
                       .device = std::get<1>(key),
                       .stream = std::get<2>(key),
                       .count = own.size(),
                       .times = Shares(BusyTimes(own), FindGaps(own, window)).Of(window)});
  }
  return streams;
}

std::vector<Work> DeviceWork(const RecordedRun& run, Breakdown& breakdown) {
  const Trace& trace = run.trace();
  const Launches& launches = run.launches();
  std::vector<Work> work;
  ForEachNode(trace, [&](NodeId node) {
    const Activity activity = DeviceActivity(trace, node);
    if (activity == Activity::kNone) return;
    breakdown.on_device = true;
    const auto time = TimeOf(trace, node);
    if (!time) {
      ++breakdown.untimed;
      return;
    }
    const auto launched = launches.time(node);
    if (!launched) ++breakdown.unlaunched;
    work.push_back({*time, activity, launched, trace.lane_id(node)});
  });
  return work;
}

// Returns the work of threads. Time of operators inside communications counts as communication, and
// waits for other threads count as none. A thread's activity beside a communication that it has
// begun is its own.
std::vector<Work> HostWork(const RecordedRun& run, Breakdown& breakdown) {
  const Trace& trace = run.trace();
  struct Thread {
    std::vector<Interval> compute;
    std::vector<Interval> communication;
    std::vector<Interval> beside;
  };
  std::map<LaneId, Thread> threads;
  ForEachNode(trace, [&](NodeId node) {
    const Activity activity = HostActivity(trace, node);
    if (activity == Activity::kNone) return;
    // The call computes; the end of its collective is unknown.
    if (StandsForLostLabel(trace, node)) ++breakdown.untimed;
    const auto time = TimeOf(trace, node);
    if (!time) {
      ++breakdown.untimed;
      return;
    }
    Thread& thread = threads[trace.lane_id(node)];
    const bool communicates = activity == Activity::kCommunication;
    (RunsBesideItsThread(trace, node) ? thread.beside
     : communicates                   ? thread.communication
                                      : thread.compute)
        .push_back(*time);
  });
  const HostTimes* times = run.host_times();
  std::vector<Work> work;
  for (auto& [lane, thread] : threads) {
    const TimeSet communication(std::move(thread.communication));
    TimeSet compute = TimeSet(std::move(thread.compute)).Without(communication);
    if (times != nullptr) compute = compute.Without(times->waits(lane));
    for (const Interval& time : compute.intervals()) {
      work.push_back({time, Activity::kCompute, std::nullopt, lane});
    }
    const TimeSet all = communication.Or(TimeSet(std::move(thread.beside)));
    for (const Interval& time : all.intervals()) {
      work.push_back({time, Activity::kCommunication, std::nullopt, lane});
    }
  }
  return work;
}

// Extends steps on devices, which run behind the program: a step lasts until the work launched
// within its mark is done, even after the mark, and the next one begins then. Work with an unknown
// launch time counts by its begin. Overlapping marks belong to several programs, whose work cannot
// be separated: they stay unchanged.
void ExtendToWork(const std::vector<Work>& work, std::vector<StepWindow>& steps) {
  for (size_t i = 1; i < steps.size(); ++i) {
    if (steps[i].window.begin < steps[i - 1].window.end) return;
  }
  std::vector<Nanos> ends;
  for (const StepWindow& step : steps) ends.push_back(step.window.end);
  for (const Work& one : work) {
    const Nanos asked = one.launched.value_or(one.time.begin);
    const auto after = std::ranges::upper_bound(
        steps, asked, {}, [](const StepWindow& step) { return step.window.begin; });
    if (after == steps.begin()) continue;
    const auto at = static_cast<size_t>(after - steps.begin()) - 1;
    if (asked < steps[at].window.end) ends[at] = std::max(ends[at], one.time.end);
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    Interval& window = steps[i].window;
    if (i > 0) window.begin = std::max(window.begin, steps[i - 1].window.end);
    window.end = std::max(window.begin, ends[i]);
  }
}

}  // namespace

Breakdown BreakDown(const RecordedRun& run) {
  const Trace& trace = run.trace();
  Breakdown breakdown;
  std::vector<Work> work = DeviceWork(run, breakdown);
  if (!breakdown.on_device) work = HostWork(run, breakdown);
  if (work.empty()) return breakdown;
  // Of works that begin together, the first launched one determines the reason of the gap.
  std::ranges::stable_sort(work, {}, [](const Work& one) {
    return std::tuple(one.time.begin, one.launched.value_or(Nanos{INT64_MAX}));
  });
  std::vector<StepWindow> steps = FindSteps(trace);
  if (breakdown.on_device) ExtendToWork(work, steps);
  const Interval window = WindowOf(work);
  Interval span = window;
  for (const StepWindow& step : steps) {
    span.begin = std::min(span.begin, step.window.begin);
    span.end = std::max(span.end, step.window.end);
  }
  std::optional<Gaps> gaps;
  if (breakdown.on_device) gaps = FindGaps(work, span);
  const Shares shares(BusyTimes(work), std::move(gaps));
  breakdown.whole = shares.Of(window);
  for (const StepWindow& step : steps)
    breakdown.steps.push_back({step.name, shares.Of(step.window)});
  if (breakdown.on_device) breakdown.streams = Streams(trace, work);
  return breakdown;
}

}  // namespace etude
