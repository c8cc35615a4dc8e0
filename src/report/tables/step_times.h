#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/analysis/time/time_summary.h"
#include "src/report/text/format.h"

namespace etude {

// Times of steps of one side, the original or its replay.
struct StepTimes {
  std::optional<TimeSummary> wall;
  std::optional<TimeSummary> cpu;
  // `median` is the mean of steps of several kinds, which may lie outside of the quartiles.
  bool is_mean = false;
};

// Of steps that have both times.
template <typename Step>
StepTimes SummariseSteps(const std::vector<Step>& steps) {
  if (steps.empty()) return {};
  std::vector<Nanos> wall;
  std::vector<Nanos> cpu;
  for (const Step& step : steps) {
    wall.push_back(step.wall);
    cpu.push_back(step.cpu);
  }
  return {.wall = Summarise(std::move(wall)), .cpu = Summarise(std::move(cpu))};
}

// The same of steps of several kinds: the mean takes the place of the median, which is of one kind.
template <typename Step>
StepTimes MeanOfSteps(const std::vector<Step>& steps) {
  StepTimes times = SummariseSteps(steps);
  if (steps.empty()) return times;
  Nanos wall;
  Nanos cpu;
  for (const Step& step : steps) {
    wall = wall + step.wall;
    cpu = cpu + step.cpu;
  }
  const auto count = static_cast<int64_t>(steps.size());
  times.wall->median = Nanos{wall.count / count};
  times.cpu->median = Nanos{cpu.count / count};
  times.is_mean = true;
  return times;
}

// "1.234 ms [1.200 ms, 1.300 ms]": median and quartiles; "unknown" if there are none.
std::string FormatTimes(const std::optional<TimeSummary>& times);

// A table of original and replay with their errors, below its titles; and rows for it.
TextTable StepTable(std::string title);
void AddStepRows(std::string_view what, const StepTimes& original, const StepTimes& replay,
                 TextTable& table);

// The replay's errors by clock, null where they are unknown.
nlohmann::ordered_json ErrorJson(const StepTimes& original, const StepTimes& replay);

}  // namespace etude
