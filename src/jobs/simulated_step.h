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

// A step of a job on a machine: the result of `etude simulate` and etude.simulate.
struct SimulatedStep {
  std::string model;  // name of the machine's model
  SimMachine machine;
  SimJob job;
  SimResult result;
  SimAccount account;
  std::optional<SimDiagnosis> diagnosis;  // for ranks that wait forever; nullopt: none
  std::vector<Table> tables;              // SimTables, SimPathTables, SimMemoryTable

  bool ended() const { return !diagnosis && !result.stopped; }
  // Returns nullopt for a job without a plan, or for a step that did not end.
  std::optional<PlanRates> rates() const;
};

// Simulates a job that was read for the machine. Warns of settings that ASTRA-sim ignores silently.
// `files_again`: the memory of PREFIX.0.et … is requested too, so they are read again. If the
// context is interrupted, returns the results so far.
Result<SimulatedStep> SimulateStep(const MachineOptions& options, SimMachine machine, SimJob job,
                                   bool strict, bool files_again, const RunContext& context);

// Returns {"format": "etude-simulate", "version": 1, …}, with the tables by their keys. `written`:
// a line for each written file. docs/commands/simulate.md lists the keys.
nlohmann::ordered_json ToJson(const SimulatedStep& step, const std::vector<std::string>& written,
                              const std::string& table = "");

}  // namespace etude
