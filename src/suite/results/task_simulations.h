#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/jobs/scaling/data_parallel_step.h"
#include "src/report/page/page.h"
#include "src/report/text/table.h"

namespace etude::suite {

// A task's recorded step, simulated as data-parallel ranks that keep the batch of each rank.
struct TaskSimulation {
  std::string task;
  std::string recording;  // capture folder
  bool kept = false;      // whether the recording was there already
  DataParallelStep one;   // the recorded step as it is, on one rank
  std::vector<DataParallelStep> steps;

  // Returns the efficiency of weak scaling: step of one rank / `step`. nullopt for a step of 0.
  std::optional<double> EfficiencyOf(const DataParallelStep& step) const;
  // Returns the time of copies between gradients and buckets: what a rank computes more than one
  // rank alone.
  Nanos CopiesOf(const DataParallelStep& step) const;
};

// Returns a row per task and number of ranks: step, communication and efficiency.
Table ScalingTable(const std::vector<TaskSimulation>& tasks);
// Returns one line for each note, with the tasks that it concerns.
std::vector<std::string> NotesOf(const std::vector<TaskSimulation>& tasks);
nlohmann::ordered_json ToJson(const TaskSimulation& task);
// Returns a page with the table and charts of it. `network`: that of the simulated clusters.
Page MakeSimulationPage(const std::vector<TaskSimulation>& tasks, const std::string& network,
                        const std::string& folder);

}  // namespace etude::suite
