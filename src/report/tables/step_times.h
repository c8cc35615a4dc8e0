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

// Step times of one side, original or replay.
struct StepTimes {
  std::optional<TimeSummary> wall;
  std::optional<TimeSummary> cpu;
  // `median` contains the mean over steps of several kinds, which may lie outside of the quartiles.
  bool is_mean = false;
};

// Summarises steps that have both times.
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

// Summarises steps of several kinds, with the mean instead of the median, which would be of one
// kind.
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

// Returns median and quartiles: "1.234 ms [1.200 ms, 1.300 ms]"; "unknown" if there are none.
std::string FormatTimes(const std::optional<TimeSummary>& times);

// Makes a table of original, replay and errors, with headings. AddStepRows adds rows to it.
TextTable StepTable(std::string title);
void AddStepRows(std::string_view what, const StepTimes& original, const StepTimes& replay,
                 TextTable& table);

// Returns the replay's errors by clock; null if unknown.
nlohmann::ordered_json ErrorJson(const StepTimes& original, const StepTimes& replay);

}  // namespace etude
