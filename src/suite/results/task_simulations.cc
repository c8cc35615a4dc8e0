#include "src/suite/results/task_simulations.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/report/text/format.h"
#include "src/report/text/json_output.h"

namespace etude::suite {

std::optional<double> TaskSimulation::EfficiencyOf(const DataParallelStep& step) const {
  if (step.step.count <= 0) return std::nullopt;
  return static_cast<double>(one.step.count) / static_cast<double>(step.step.count);
}

Nanos TaskSimulation::CopiesOf(const DataParallelStep& step) const {
  return step.computation - one.computation;
}

Table ScalingTable(const std::vector<TaskSimulation>& tasks) {
  Table table{.key = "steps",
              .title = "Data-parallel steps, each rank with the recorded batch",
              .columns = {{"id", "task", Unit::kText},
                          {"program_step_ns", "measured step", Unit::kTime},
                          {"one_rank_ns", "one rank", Unit::kTime},
                          {"gradient_bytes", "gradients", Unit::kBytes},
                          {"all_reduces", "all-reduces", Unit::kCount},
                          {"ranks", "ranks", Unit::kCount},
                          {"step_ns", "step", Unit::kTime},
                          {"communication_ns", "comm", Unit::kTime},
                          {"exposed_ns", "exposed comm", Unit::kTime},
                          {"copies_ns", "bucket copies", Unit::kTime},
                          {"efficiency", "efficiency", Unit::kShare}}};
  for (const TaskSimulation& task : tasks) {
    for (const DataParallelStep& step : task.steps) {
      table.rows.push_back({task.task, ToCell(task.one.program_step), task.one.step.count,
                            step.gradients.count, step.all_reduces, step.ranks, step.step.count,
                            step.communication.count, step.exposed.count, task.CopiesOf(step).count,
                            ToCell(task.EfficiencyOf(step))});
    }
  }
  return table;
}

std::vector<std::string> NotesOf(const std::vector<TaskSimulation>& tasks) {
  constexpr size_t kNamed = 3;
  std::vector<std::pair<std::string, std::vector<std::string_view>>> found;  // note, tasks
  const auto add = [&](const TaskSimulation& task, const DataParallelStep& step) {
    for (const std::string& note : step.notes) {
      auto at = std::ranges::find(found, note, &decltype(found)::value_type::first);
      if (at == found.end()) at = found.insert(at, {note, {}});
      if (std::ranges::count(at->second, task.task) == 0) at->second.push_back(task.task);
    }
  };
  for (const TaskSimulation& task : tasks) {
    add(task, task.one);
    for (const DataParallelStep& step : task.steps) add(task, step);
  }
  std::vector<std::string> lines;
  for (const auto& [note, of] : found) {
    lines.push_back(fmt::format("{}: {}",
                                of.size() <= kNamed ? fmt::format("{}", fmt::join(of, ", "))
                                                    : FormatCount(of.size(), "task"),
                                note));
  }
  return lines;
}

nlohmann::ordered_json ToJson(const TaskSimulation& task) {
  nlohmann::ordered_json json = {{"id", task.task},
                                 {"recording", task.recording},
                                 {"kept", task.kept},
                                 {"recorded_step_ns", OrNull(task.one.recorded_step)},
                                 {"program_step_ns", OrNull(task.one.program_step)},
                                 {"recording_taken_ns", task.one.recording_taken.count},
                                 {"one_rank_ns", task.one.step.count},
                                 {"notes", task.one.notes}};
  nlohmann::ordered_json& steps = json["steps"] = nlohmann::ordered_json::array();
  for (const DataParallelStep& step : task.steps) {
    steps.push_back({{"ranks", step.ranks},
                     {"gradient_bytes", step.gradients.count},
                     {"all_reduces", step.all_reduces},
                     {"step_ns", step.step.count},
                     {"communication_ns", step.communication.count},
                     {"exposed_ns", step.exposed.count},
                     {"copies_ns", task.CopiesOf(step).count},
                     {"efficiency", OrNull(task.EfficiencyOf(step))},
                     {"notes", step.notes}});
  }
  return json;
}

Page MakeSimulationPage(const std::vector<TaskSimulation>& tasks, const std::string& network,
                        const std::string& folder) {
  Table table = ScalingTable(tasks);
  Page::Section scaling{
      .key = "scaling",
      .title = "Weak scaling",
      .about =
          "Recorded steps as those of data-parallel ranks, which keep the recorded batch. "
          "Efficiency is the step of one rank over that of many."};
  scaling.facts = {{"network", network, Unit::kText}};
  scaling.notes = NotesOf(tasks);
  scaling.charts = {Bars(table, {.title = "efficiency by ranks",
                                 .categories = {"id"},
                                 .values = {"efficiency"},
                                 .series = "ranks"}),
                    Bars(table, {.title = "exposed communication by ranks",
                                 .categories = {"id"},
                                 .values = {"exposed_ns"},
                                 .series = "ranks"})};
  scaling.tables.push_back(std::move(table));
  return {.title = "Etude suite: tasks on simulated clusters",
          .inputs = {folder},
          .sections = {std::move(scaling)}};
}

}  // namespace etude::suite
