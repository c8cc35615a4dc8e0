#include "src/analysis/comm/clock_offsets.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace etude {
namespace {

constexpr uint64_t kEnough = 3;  // meetings
constexpr Nanos kMostSpread{1'000'000};

// Returns one of the observed differences: a value between two of them, as from Quantile, may
// belong to no call.
Nanos SeenQuantile(const std::vector<Nanos>& sorted, double share) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<size_t>(share * last + 0.5)];
}

// Returns, by log, for ranks with unknown clocks, the differences of their ends of meetings from
// those of ranks with known clocks.
std::map<size_t, std::vector<Nanos>> FindDifferences(
    std::span<const CommLog> logs, std::span<const std::vector<CallPlace>> meetings,
    const std::vector<ClockOffset>& clocks) {
  const auto call_at = [&](const CallPlace& place) -> const CommCall& {
    return logs[place.log].calls[place.call];
  };
  std::map<size_t, std::vector<Nanos>> differences;
  for (const std::vector<CallPlace>& meeting : meetings) {
    if (!EndsTogether(call_at(meeting.front()).type)) continue;
    const auto known = std::ranges::find_if(meeting, [&](const CallPlace& place) {
      return clocks[place.log].offset && call_at(place).end;
    });
    if (known == meeting.end()) continue;
    const Nanos end = *call_at(*known).end - *clocks[known->log].offset;
    for (const CallPlace& place : meeting) {
      if (clocks[place.log].offset || !call_at(place).end) continue;
      differences[place.log].push_back(*call_at(place).end - end);
    }
  }
  return differences;
}

std::string WhyNone(const ClockOffset& clock) {
  if (clock.is_none) return "its trace has no start times";
  const bool one = clock.meetings == 1;
  return clock.meetings < kEnough
             ? fmt::format("{} {} on all ranks together {} found, at least {} required",
                           clock.meetings, one ? "collective that ends" : "collectives that end",
                           one ? "was" : "were", kEnough)
             : fmt::format("its {} collectives differ by ± {:.1f} ms, expected at most ± {:.1f} ms",
                           clock.meetings, clock.spread.ms(), kMostSpread.ms());
}

}  // namespace

bool EndsTogether(CollectiveType type) {
  switch (type) {
    case CollectiveType::kAllReduce:
    case CollectiveType::kAllGather:
    case CollectiveType::kReduceScatter:
    case CollectiveType::kReduceScatterBlock:
    case CollectiveType::kAllToAll:
    case CollectiveType::kBarrier: return true;
    case CollectiveType::kUnknown:
    case CollectiveType::kReduce:
    case CollectiveType::kGather:
    case CollectiveType::kScatter:
    case CollectiveType::kBroadcast: return false;
  }
  return false;
}

bool HaveOneClock(std::span<const CommLog> logs) {
  return !logs.empty() && std::ranges::all_of(logs, &CommLog::job_clock);
}

bool AreOfOneMachine(std::span<const CommLog> logs) {
  return !logs.empty() && !logs.front().clock.empty() &&
         std::ranges::all_of(logs,
                             [&](const CommLog& log) { return log.clock == logs.front().clock; });
}

std::vector<Nanos> OriginsOf(std::span<const CommLog> logs) {
  std::vector<Nanos> origins(logs.size());
  for (size_t i = 0; i < logs.size(); ++i) {
    if (!logs[i].base ||
        __builtin_sub_overflow(logs[i].base->count, logs.front().base->count, &origins[i].count)) {
      return std::vector<Nanos>(logs.size());
    }
  }
  return origins;
}

std::vector<ClockOffset> CompareClocks(std::span<const CommLog> logs,
                                       std::span<const std::vector<CallPlace>> meetings) {
  std::vector<ClockOffset> clocks(logs.size());
  const bool is_one = HaveOneClock(logs) || AreOfOneMachine(logs);
  const std::vector<Nanos> origins = OriginsOf(logs);
  for (size_t i = 0; i < logs.size(); ++i) {
    clocks[i].rank = logs[i].rank;
    clocks[i].origin = origins[i];
    clocks[i].is_none = logs[i].untimed;
    if (is_one || i == 0) clocks[i].offset = Nanos{} - origins[i];
  }
  if (is_one) return clocks;
  bool changed = true;
  while (changed) {
    changed = false;
    for (auto& [log, values] : FindDifferences(logs, meetings, clocks)) {
      ClockOffset& clock = clocks[log];
      clock.meetings = values.size();
      if (values.size() < kEnough) continue;
      std::ranges::sort(values);
      clock.spread = Nanos{(SeenQuantile(values, 0.75) - SeenQuantile(values, 0.25)).count / 2};
      if (clock.spread > kMostSpread) continue;
      clock.offset = SeenQuantile(values, 0.5);
      changed = true;
    }
  }
  for (ClockOffset& clock : clocks) {
    if (!clock.offset) clock.reason = WhyNone(clock);
  }
  return clocks;
}

}  // namespace etude
