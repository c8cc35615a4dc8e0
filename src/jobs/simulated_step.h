#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/jobs/machine_options.h"
#include "src/jobs/sim_job.h"
#include "src/report/text/table.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/result/account.h"
#include "src/sim/result/arrivals.h"
#include "src/sim/result/diagnosis.h"
#include "src/sim/sweep/plan_facts.h"

namespace etude {

// A step of a job on a machine: what `etude simulate` and etude.simulate give.
struct SimulatedStep {
  std::string model;  // of the machine
  SimMachine machine;
  SimJob job;
  SimResult result;
  SimAccount account;
  std::optional<SimDiagnosis> diagnosis;  // of ranks that wait for ever; nullopt: there are none
  std::vector<Table> tables;              // SimTables, SimPathTables, SimMemoryTable

  bool ended() const { return !diagnosis && !result.stopped; }
  // nullopt: of a job without a plan, or of a step that did not end.
  std::optional<PlanRates> rates() const;
};

// Simulates a job that was read for the machine. Warns of what ASTRA-sim passes over without a
// word. `files_again`: the memory of PREFIX.0.et … is wanted, too, for which they are read once
// more. Stops, with what there is, when the context says so.
Result<SimulatedStep> SimulateStep(const MachineOptions& options, SimMachine machine, SimJob job,
                                   bool strict, bool files_again, const RunContext& context);

// {"format": "etude-simulate", "version": 1, …}, with the tables by their keys; `written`: lines of
// what was written. docs/commands/simulate.md has the keys.
nlohmann::ordered_json ToJson(const SimulatedStep& step, const std::vector<std::string>& written,
                              const std::string& table = "");

}  // namespace etude
