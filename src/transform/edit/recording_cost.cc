#include "src/transform/edit/recording_cost.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "src/run/waits/program_order.h"
#include "src/transform/edit/rewrite.h"

namespace etude {
namespace {

// Max share of the time between two events that counts as recording cost.
constexpr double kShareMax = 0.9;

bool HasDeviceWork(const Trace& trace) {
  bool found = false;
  ForEachNode(trace, [&](NodeId node) {
    found = found || (trace.place(node) == Place::kDevice && trace.duration(node));
  });
  return found;
}

// Returns the begins and ends of recorded host nodes, in order. A backend's own work is labelled in
// the same way.
std::vector<Nanos> EventsOf(const Trace& trace) {
  std::vector<Nanos> events;
  ForEachNode(trace, [&](NodeId node) {
    const NodeKind kind = trace.kind(node);
    if (trace.place(node) == Place::kDevice || IsRoot(kind) || kind == NodeKind::kMetadata) return;
    const auto start = trace.start(node);
    const auto duration = trace.duration(node);
    if (!start || !duration) return;
    events.push_back(*start);
    events.push_back(*start + *duration);
  });
  std::ranges::sort(events);
  return events;
}

// Remaining time between events if each event costs `cost`.
class Warp {
 public:
  Warp(std::vector<Nanos> events, std::span<const Interval> steps) : events_(std::move(events)) {
    within_.reserve(events_.size());
    size_t step = 0;
    for (size_t i = 0; i < events_.size(); ++i) {
      while (step < steps.size() && steps[step].end < events_[i]) ++step;
      within_.push_back(step < steps.size() && steps[step].begin < events_[i]);
    }
  }

  uint64_t events() const {
    return (static_cast<uint64_t>(std::ranges::count(within_, true)) + 1) / 2;
  }

  // Returns the total reduction.
  double Taken(double cost) const {
    double sum = 0;
    for (size_t i = 1; i < events_.size(); ++i) sum += Loss(i, cost);
    return sum;
  }

  // Sets the cost for At.
  void Settle(double cost) {
    lost_.assign(events_.size(), Nanos{});
    double sum = 0;
    for (size_t i = 1; i < events_.size(); ++i) {
      sum += Loss(i, cost);
      lost_[i] = Nanos{std::llround(sum)};
    }
  }
  // Returns the new time of a moment: proportional between two events.
  Nanos At(Nanos time) const {
    const auto after = std::ranges::lower_bound(events_, time);
    if (after == events_.end()) return events_.empty() ? time : time - lost_.back();
    const auto i = static_cast<size_t>(after - events_.begin());
    if (i == 0 || *after == time) return time - lost_[i];
    const Nanos length = *after - events_[i - 1];
    const Nanos part = time - events_[i - 1];
    const double share = static_cast<double>(part.count) / static_cast<double>(length.count);
    return time - lost_[i - 1] - Scaled(lost_[i] - lost_[i - 1], share);
  }

 private:
  // Half of the cost is after the previous event, half before the next one.
  double Loss(size_t i, double cost) const {
    if (!within_[i]) return 0;
    const auto length = static_cast<double>((events_[i] - events_[i - 1]).count);
    return std::min(cost / 2, kShareMax * length);
  }

  std::vector<Nanos> events_;
  std::vector<bool> within_;  // by event: its preceding stretch is within a step
  std::vector<Nanos> lost_;   // until the event
};

// Returns the cost per event for a total reduction of `wanted`, as far as possible.
double FindCost(const Warp& warp, double wanted, double longest) {
  double low = 0;
  double high = 2 * longest;
  constexpr int kRounds = 60;
  for (int i = 0; i < kRounds; ++i) {
    const double middle = (low + high) / 2;
    (warp.Taken(middle) < wanted ? low : high) = middle;
  }
  return high;
}

}  // namespace

Result<std::optional<WithoutCost>> TakeOutRecordingCost(const Trace& trace,
                                                        std::span<const Interval> steps, Nanos step,
                                                        const Limits& limits) {
  Nanos recorded;
  for (const Interval& one : steps) recorded = recorded + one.length();
  const Nanos wanted = recorded - Nanos{step.count * static_cast<int64_t>(steps.size())};
  if (steps.empty() || step <= Nanos{} || wanted <= Nanos{} || HasDeviceWork(trace)) {
    return std::nullopt;
  }
  Warp warp(EventsOf(trace), steps);
  const double cost =
      FindCost(warp, static_cast<double>(wanted.count), static_cast<double>(recorded.count));
  warp.Settle(cost);
  ETUDE_ASSIGN_OR_RETURN(
      Trace without, RewriteTrace(trace, limits, [&](RewrittenNode& node, TraceBuilder&) -> Status {
        if (!node.row.start) return {};
        const Nanos begin = warp.At(*node.row.start);
        if (node.row.duration) {
          node.row.duration = warp.At(*node.row.start + *node.row.duration) - begin;
        }
        node.row.start = begin;
        node.row.exclusive.reset();  // follows from the durations
        return {};
      }));
  return WithoutCost{.trace = std::move(without),
                     .taken = Nanos{std::llround(warp.Taken(cost))},
                     .per_event = Nanos{std::llround(cost)},
                     .events = warp.events()};
}

}  // namespace etude
