#include "src/cli/simulate/simulate.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/cli/app/stop_signal.h"
#include "src/cli/simulate/machine_options.h"
#include "src/cli/simulate/recorded_times.h"
#include "src/cli/simulate/sim_job.h"
#include "src/cli/simulate/sim_warnings.h"
#include "src/cli/simulate/simulated_files.h"
#include "src/cli/tool/table_output.h"
#include "src/report/tables/graph_time_tables.h"
#include "src/report/tables/sim_memory_table.h"
#include "src/report/tables/sim_path_tables.h"
#include "src/report/tables/sim_tables.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"
#include "src/report/text/plan_text.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/result/account.h"
#include "src/sim/result/arrivals.h"
#include "src/sim/result/diagnosis.h"
#include "src/sim/result/sim_path.h"

namespace etude {
namespace {

std::vector<std::string> Joined(std::vector<std::string> all,
                                const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// Without times, and what is not finished, that are 0 or unknown in all rows.
Table WithoutZeros(Table table) {
  for (size_t i = table.columns.size(); i-- > 0;) {
    const auto is_zero = [&](const std::vector<Cell>& row) {
      return row[i] == Cell(int64_t{0}) || row[i] == Cell();
    };
    static constexpr std::string_view kAlways[] = {"end_ns", "compute_ns", "idle_ns"};
    const std::string& key = table.columns[i].key;
    const bool may_go = key == "unfinished" || (table.columns[i].unit == Unit::kTime &&
                                                std::ranges::count(kAlways, key) == 0);
    if (!may_go || !std::ranges::all_of(table.rows, is_zero)) continue;
    table.columns.erase(table.columns.begin() + static_cast<ptrdiff_t>(i));
    for (std::vector<Cell>& row : table.rows) row.erase(row.begin() + static_cast<ptrdiff_t>(i));
  }
  return table;
}

// "": of a job that was not recorded, or of which it is not known.
std::string RecordedTextOf(const SimJob& job) {
  std::vector<std::string> times;
  if (job.recorded_step) times.push_back("a step " + FormatTime(*job.recorded_step));
  if (job.program_step) times.push_back("without recording " + FormatTime(*job.program_step));
  if (job.recording_taken > Nanos{} && job.recorded_step) {
    times.push_back(FormatTime(job.recording_taken) + " of recording are taken out of the times");
  }
  return times.empty() ? "" : fmt::format("  recorded     {}\n", fmt::join(times, ", "));
}

class SimulateCommand : public Command {
 public:
  std::string_view name() const override { return "simulate"; }
  std::string_view summary() const override {
    return "simulate a job on a machine: its step time, and what it waits for";
  }
  void Declare(Options& options) override {
    job_.Declare(options);
    machine_.Declare(options);
    options.Choice("--times", &times_, {"model", "recorded"},
                   "times of nodes: simulated on the machine, or as recorded");
    files_.Declare(options);
    std::vector<std::string> names = SimTableNames();
    names.insert(names.end(), kSimPathTables.begin(), kSimPathTables.end());
    names.emplace_back(kSimMemoryTable);
    names.insert(names.end(), kGraphTimeTables.begin(), kGraphTimeTables.end());
    output_.Declare(options, std::move(names));
  }
  Result<ExitCode> Run(const Console& console) override {
    ETUDE_RETURN_IF_ERROR(output_.Check());
    const bool is_recorded = times_ == "recorded";
    const bool is_of_recorded = std::ranges::count(kGraphTimeTables, output_.table()) > 0;
    if (!output_.table().empty() && is_recorded != is_of_recorded) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("--table: table '{}' {} --times recorded", output_.table(),
                                   is_recorded ? "is not available with" : "requires"));
    }
    if (is_recorded) return RunRecorded(console);
    if (files_.folder.empty() && files_ != SimulatedFilesOptions()) {
      return MakeError(ErrorCode::kUsage, "simulate: --to requires -o FOLDER");
    }
    ETUDE_RETURN_IF_ERROR(files_.Check(job_, console));
    ETUDE_ASSIGN_OR_RETURN(const SimMachine machine, machine_.Read(console));
    ETUDE_ASSIGN_OR_RETURN(const SimJob job,
                           ReadSimJob(job_, machine.npus(), console.strict(), console.context()));
    ETUDE_RETURN_IF_ERROR(files_.CheckJob(job));
    ETUDE_ASSIGN_OR_RETURN(const SimResult result, SimulateUntilStopped(machine, job, console));
    WarnOfSilences(machine,
                   {.system = machine_.system.empty() ? "--system" : machine_.system,
                    .memory = machine_.memory},
                   job.workload, result, console.context());
    const Arrivals arrivals(machine, job.workload, result);
    const SimAccount account = AccountOf(job.workload, result, arrivals);
    std::optional<SimDiagnosis> diagnosis;
    if (!result.stopped) diagnosis = Diagnose(job.workload, result, arrivals);
    ETUDE_ASSIGN_OR_RETURN(const std::vector<Table> tables,
                           TablesOf(machine, job, result, account, console));
    ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> written,
                           WriteSimulatedFiles(files_, job, result, console));
    Print({.machine = machine,
           .job = job,
           .result = result,
           .account = account,
           .diagnosis = diagnosis,
           .written = written},
          tables, console);
    if (result.stopped) {
      console.Complain("interrupted: these are the figures of what was simulated so far");
      return ExitCode::kInterrupted;
    }
    if (!diagnosis) return ExitCode::kOk;
    Complain(*diagnosis, job.prefix, console);
    return ExitCode::kNo;
  }

 private:
  struct Simulated {
    const SimMachine& machine;
    const SimJob& job;
    const SimResult& result;
    const SimAccount& account;
    const std::optional<SimDiagnosis>& diagnosis;
    const std::vector<std::string>& written;  // lines
  };

  Result<ExitCode> RunRecorded(const Console& console) const {
    const SimJobOptions job{.paths = job_.paths, .jobs = job_.jobs};
    if (machine_ != MachineOptions() || files_ != SimulatedFilesOptions() || job_ != job) {
      return MakeError(
          ErrorCode::kUsage,
          "simulate: --times recorded simulates no machine; remove --network and other "
          "machine options, --comm-groups, --compute, --fill-ranks and -o");
    }
    ETUDE_ASSIGN_OR_RETURN(const Inspected found,
                           SimulateRecordedTimes(job_.paths, job_.jobs, console));
    if (output_.csv()) {
      PrintCsv(found.tables, console);
    } else if (output_.json()) {
      nlohmann::ordered_json json = {
          {"format", "etude-simulate-recorded"}, {"version", 1}, {"notes", found.notes}};
      AddWanted(found.tables, json);
      console.Print(JsonText(json));
    } else {
      console.Print(etude::ToText(std::vector{found}, output_.table(), output_.top()));
    }
    return ExitCode::kOk;
  }

  void PrintCsv(const std::vector<Table>& tables, const Console& console) const {
    const std::string& key = output_.table().empty() ? tables.front().key : output_.table();
    console.PrintData(ToCsv(*std::ranges::find(tables, key, &Table::key)));
  }
  void AddWanted(const std::vector<Table>& tables, nlohmann::ordered_json& json) const {
    for (const Table& table : tables) {
      if (output_.table().empty() || output_.table() == table.key) json[table.key] = ToJson(table);
    }
  }

  Result<std::vector<Table>> TablesOf(const SimMachine& machine, const SimJob& job,
                                      const SimResult& result, const SimAccount& account,
                                      const Console& console) const {
    std::vector<Table> tables = SimTables(machine, job.workload, result, account);
    const SimPath path = FindSimPath(machine, job.workload, result);
    for (Table& table : SimPathTables(path, job.workload, NamesOfSimJob(job, console))) {
      tables.push_back(std::move(table));
    }
    // Files of PREFIX have to be read once more for it.
    std::vector<SimMemoryRow> memory;
    if (job.job || output_.table() == kSimMemoryTable) {
      ETUDE_ASSIGN_OR_RETURN(memory, MemoryOfSimJob(job, result, console));
    }
    tables.push_back(SimMemoryTable(std::move(memory)));
    return tables;
  }

  static Result<SimResult> SimulateUntilStopped(const SimMachine& machine, const SimJob& job,
                                                const Console& console) {
    ETUDE_ASSIGN_OR_RETURN(const auto stop, StopSignal::Make());
    RunContext context = console.context();
    context.stop = stop->flag();
    return Simulate(machine, job.workload, {.name = NamesOfRanks(job.prefix), .context = &context});
  }

  void Print(const Simulated& step, const std::vector<Table>& tables,
             const Console& console) const {
    if (output_.csv()) {
      PrintCsv(tables, console);
    } else if (output_.json()) {
      console.Print(JsonText(DocumentOf(step, tables)));
    } else {
      console.Print(TextOf(step, tables));
    }
  }

  nlohmann::ordered_json DocumentOf(const Simulated& step, const std::vector<Table>& tables) const {
    nlohmann::ordered_json json = {{"format", "etude-simulate"},
                                   {"version", 1},
                                   {"model", machine_.model},
                                   {"machine", ToJson(step.machine)},
                                   {"rank_count", step.result.class_of.size()},
                                   {"finished", !step.diagnosis && !step.result.stopped},
                                   {"interrupted", step.result.stopped},
                                   {"step_ns", step.account.step},
                                   {"messages", step.result.messages},
                                   {"notes", Joined(step.job.warnings, step.job.notes)},
                                   {"written", step.written}};
    if (step.job.recorded_step) json["recorded_step_ns"] = step.job.recorded_step->count;
    if (step.job.program_step) json["program_step_ns"] = step.job.program_step->count;
    if (step.job.recording_taken > Nanos{}) {
      json["recording_taken_ns"] = step.job.recording_taken.count;
    }
    if (step.job.plan) {
      json["plan"] = ToJson(*step.job.plan);
      if (const auto rates = RatesOfStep(step)) {
        json["items_per_s"] = rates->items_per_second;
        json["items_per_s_per_device"] = rates->items_per_second_per_device;
        json["mfu"] = rates->mfu ? nlohmann::ordered_json(*rates->mfu) : nullptr;
      }
    }
    if (step.diagnosis) json["waiting"] = ToJson(*step.diagnosis);
    AddWanted(tables, json);
    return json;
  }

  std::string TextOf(const Simulated& step, const std::vector<Table>& tables) const {
    std::string text;
    if (output_.table().empty()) {
      const char* what = "step time";
      if (step.diagnosis) what = "stuck after";
      if (step.result.stopped) what = "interrupted after";
      text +=
          fmt::format("{} {}: {} in {}, {}\n", what, FormatTime(Nanos{step.account.step}),
                      FormatCount(step.result.class_of.size(), "rank"),
                      FormatCount(step.result.ranks.size(), "class", "classes"), machine_.model);
      text += ToText(step.machine) + RecordedTextOf(step.job);
      if (step.job.plan) text += PlanText(*step.job.plan, RatesOfStep(step));
    }
    for (const Table& table : tables) {
      // What ranks do is short in "times", and the path in sums.
      const bool is_long = table.key == "ranks" || table.key == "path_ranks" || table.key == "path";
      if (output_.table() == table.key) text += ToTextOfWanted(WithoutZeros(table), output_.top());
      if (output_.table().empty() && !is_long) {
        text += etude::ToText(WithoutZeros(table), output_.top());
      }
    }
    for (const std::string& note : step.job.notes) text += "note: " + note + "\n";
    for (const std::string& line : step.written) text += line + "\n";
    return text;
  }

  // nullopt: of a job without a plan, or of a step that did not end.
  static std::optional<PlanRates> RatesOfStep(const Simulated& step) {
    if (!step.job.plan || step.diagnosis || step.result.stopped) return std::nullopt;
    return RatesOf(*step.job.plan, Nanos{step.account.step});
  }

  SimJobOptions job_;
  MachineOptions machine_;
  SimulatedFilesOptions files_;
  std::string times_ = "model";
  TableOutput output_;
};

}  // namespace

std::unique_ptr<Command> MakeSimulateCommand() { return std::make_unique<SimulateCommand>(); }

}  // namespace etude
