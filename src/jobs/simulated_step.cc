#include "src/jobs/simulated_step.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "src/jobs/sim_warnings.h"
#include "src/jobs/simulated_files.h"
#include "src/report/tables/simulated/sim_memory_table.h"
#include "src/report/tables/simulated/sim_path_tables.h"
#include "src/report/tables/simulated/sim_tables.h"
#include "src/report/text/json_output.h"
#include "src/report/text/plan_text.h"
#include "src/sim/result/sim_path.h"

namespace etude {
namespace {

Status AddTables(bool strict, bool files_again, const RunContext& context, SimulatedStep& step) {
  step.tables = SimTables(step.machine, step.job.workload, step.result, step.account);
  const SimPath path = FindSimPath(step.machine, step.job.workload, step.result);
  const SimNodeNames names = NamesOfSimJob(step.job, strict, context);
  for (Table& table : SimPathTables(path, step.job.workload, names)) {
    step.tables.push_back(std::move(table));
  }
  std::vector<SimMemoryRow> memory;
  if (step.job.job || files_again) {
    ETUDE_ASSIGN_OR_RETURN(memory, MemoryOfSimJob(step.job, step.result, strict, context));
  }
  step.tables.push_back(SimMemoryTable(std::move(memory)));
  return {};
}

}  // namespace

std::optional<PlanRates> SimulatedStep::rates() const {
  if (!job.plan || !ended()) return std::nullopt;
  return RatesOf(*job.plan, Nanos{account.step});
}

Result<SimulatedStep> SimulateStep(const MachineOptions& options, SimMachine machine, SimJob job,
                                   bool strict, bool files_again, const RunContext& context) {
  SimulatedStep step{.model = machine.ModelName(),
                     .machine = std::move(machine),
                     .job = std::move(job),
                     .result = {},
                     .account = {},
                     .diagnosis = {},
                     .tables = {}};
  ETUDE_RETURN_IF_ERROR(CheckRoofline(options.system, step.machine, step.job.workload));
  ETUDE_ASSIGN_OR_RETURN(step.result,
                         Simulate(step.machine, step.job.workload,
                                  {.name = NamesOfRanks(step.job.prefix), .context = &context}));
  WarnOfSilences(
      step.machine,
      {.system = options.system.empty() ? "--system" : options.system, .memory = options.memory},
      step.job.workload, step.result, context);
  const Arrivals arrivals(step.machine, step.job.workload, step.result);
  step.account = AccountOf(step.job.workload, step.result, arrivals);
  std::ranges::move(DoubtfulTimes(step.machine, step.account), std::back_inserter(step.job.notes));
  if (!step.result.stopped) step.diagnosis = Diagnose(step.job.workload, step.result, arrivals);
  // An interrupted simulation has all its tables.
  RunContext to_end = context;
  to_end.stop = nullptr;
  ETUDE_RETURN_IF_ERROR(AddTables(strict, files_again, to_end, step));
  return step;
}

nlohmann::ordered_json ToJson(const SimulatedStep& step, const std::vector<std::string>& written,
                              const std::string& table) {
  std::vector<std::string> notes = step.job.warnings;
  notes.insert(notes.end(), step.job.notes.begin(), step.job.notes.end());
  nlohmann::ordered_json json = {{"format", "etude-simulate"},
                                 {"version", 1},
                                 {"model", step.model},
                                 {"machine", ToJson(step.machine)},
                                 {"rank_count", step.result.class_of.size()},
                                 {"finished", step.ended()},
                                 {"interrupted", step.result.stopped},
                                 {"step_ns", step.account.step},
                                 {"messages", step.result.messages},
                                 {"notes", std::move(notes)},
                                 {"written", written}};
  if (step.job.recorded_step) json["recorded_step_ns"] = step.job.recorded_step->count;
  if (step.job.program_step) json["program_step_ns"] = step.job.program_step->count;
  if (step.job.recording_taken > Nanos{}) {
    json["recording_taken_ns"] = step.job.recording_taken.count;
  }
  if (step.job.edited_from) {
    json["edited_from"] = {{"recorded_step_ns", OrNull(step.job.edited_from->recorded_step)},
                           {"program_step_ns", OrNull(step.job.edited_from->program_step)}};
  }
  if (step.job.plan) {
    json["plan"] = ToJson(*step.job.plan);
    if (const auto rates = step.rates()) {
      json["items_per_s"] = rates->items_per_second;
      json["items_per_s_per_device"] = rates->items_per_second_per_device;
      json["mfu"] = rates->mfu ? nlohmann::ordered_json(*rates->mfu) : nullptr;
    }
  }
  if (step.diagnosis) json["waiting"] = ToJson(*step.diagnosis);
  for (const Table& one : step.tables) {
    if (table.empty() || table == one.key) json[one.key] = ToJson(one);
  }
  return json;
}

}  // namespace etude
