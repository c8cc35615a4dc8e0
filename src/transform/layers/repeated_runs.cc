#include "src/transform/layers/repeated_runs.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

namespace etude {
namespace {

constexpr size_t kReturns = 16;
constexpr size_t kMostPeriods = 512;

// Returns the periods to be tried, ascending.
std::vector<size_t> PeriodsOf(std::span<const uint32_t> tokens) {
  std::unordered_map<size_t, size_t> counts;  // by distance
  std::unordered_map<uint32_t, std::vector<size_t>> places;
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::vector<size_t>& before = places[tokens[i]];
    for (size_t k = 0; k < std::min(kReturns, before.size()); ++k) {
      const size_t distance = i - before[before.size() - 1 - k];
      if (2 * distance <= tokens.size()) ++counts[distance];
    }
    before.push_back(i);
  }
  std::vector<std::pair<size_t, size_t>> by_count;
  for (const auto& [distance, count] : counts) by_count.emplace_back(count, distance);
  std::ranges::sort(by_count, std::greater<>());
  by_count.resize(std::min(by_count.size(), kMostPeriods));
  std::vector<size_t> periods;
  for (const auto& [count, distance] : by_count) periods.push_back(distance);
  std::ranges::sort(periods);
  return periods;
}

// Returns whether `run` lies in a run whose period divides its own.
bool IsMultiple(const RepeatedRun& run, std::span<const RepeatedRun> found) {
  return std::ranges::any_of(found, [&](const RepeatedRun& other) {
    return run.period % other.period == 0 && other.begin <= run.begin &&
           run.begin + run.length <= other.begin + other.length;
  });
}

}  // namespace

std::vector<RepeatedRun> FindRepeatedRuns(std::span<const uint32_t> tokens) {
  std::vector<RepeatedRun> runs;
  for (const size_t period : PeriodsOf(tokens)) {
    const size_t shorter = runs.size();  // runs of shorter periods
    size_t equal = 0;                    // tokens up to here that equal the one a period later
    for (size_t i = 0; i + period <= tokens.size(); ++i) {
      if (i + period < tokens.size() && tokens[i] == tokens[i + period]) {
        ++equal;
        continue;
      }
      const RepeatedRun run{.begin = i - equal, .length = equal + period, .period = period};
      if (equal >= period && !IsMultiple(run, std::span(runs).first(shorter))) runs.push_back(run);
      equal = 0;
    }
  }
  std::ranges::sort(runs, {},
                    [](const RepeatedRun& run) { return std::pair(run.begin, run.period); });
  return runs;
}

}  // namespace etude
