#include "src/report/tables/step_times.h"

#include <fmt/format.h>

#include "src/report/text/json_output.h"

namespace etude {

std::string FormatTimes(const std::optional<TimeSummary>& times) {
  if (!times) return "unknown";
  return fmt::format("{} [{}, {}]", FormatTime(times->median), FormatTime(times->p25),
                     FormatTime(times->p75));
}

TextTable StepTable(std::string title) {
  using enum TextTable::Align;
  TextTable table({kLeft, kRight, kRight, kRight});
  table.Row({std::move(title), "original [p25, p75]", "replay [p25, p75]", "error"});
  return table;
}

void AddStepRows(std::string_view what, const StepTimes& original, const StepTimes& replay,
                 TextTable& table) {
  const auto row = [&](std::string_view clock, std::optional<TimeSummary> StepTimes::*times) {
    const auto error = RelativeError(original.*times, replay.*times);
    const std::string of_original = original.is_mean && original.*times
                                        ? FormatTime((original.*times)->median) + " (mean)"
                                        : FormatTimes(original.*times);
    table.Row({fmt::format("{}, {} time", what, clock), of_original, FormatTimes(replay.*times),
               error ? FormatError(*error) : "unknown"});
  };
  row("CPU", &StepTimes::cpu);
  row("wall", &StepTimes::wall);
}

nlohmann::ordered_json ErrorJson(const StepTimes& original, const StepTimes& replay) {
  return {{"wall", OrNull(RelativeError(original.wall, replay.wall))},
          {"cpu", OrNull(RelativeError(original.cpu, replay.cpu))}};
}

}  // namespace etude
