#include "src/cli/simulate.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/cli/machine_options.h"
#include "src/cli/sim_job.h"
#include "src/cli/sim_warnings.h"
#include "src/cli/table_output.h"
#include "src/report/format.h"
#include "src/report/json_output.h"
#include "src/report/sim_tables.h"
#include "src/sim/account.h"
#include "src/sim/arrivals.h"
#include "src/sim/diagnosis.h"
#include "src/sim/simulator.h"

namespace etude {
namespace {

// Without times that are 0 in all rows.
Table WithoutZeros(Table table) {
  for (size_t i = table.columns.size(); i-- > 0;) {
    const auto is_zero = [&](const std::vector<Cell>& row) { return row[i] == Cell(int64_t{0}); };
    if (table.columns[i].unit != Unit::kTime || !std::ranges::all_of(table.rows, is_zero)) continue;
    table.columns.erase(table.columns.begin() + static_cast<ptrdiff_t>(i));
    for (std::vector<Cell>& row : table.rows) row.erase(row.begin() + static_cast<ptrdiff_t>(i));
  }
  return table;
}

class SimulateCommand : public Command {
 public:
  std::string_view name() const override { return "simulate"; }
  std::string_view summary() const override {
    return "run a job on a simulated machine: how long its step takes there, and why";
  }
  void Declare(Options& options) override {
    job_.Declare(options);
    machine_.Declare(options);
    output_.Declare(options, SimTableNames());
  }
  Result<ExitCode> Run(const Console& console) override {
    ETUDE_RETURN_IF_ERROR(output_.Check());
    ETUDE_ASSIGN_OR_RETURN(const SimMachine machine, machine_.Read(console));
    ETUDE_ASSIGN_OR_RETURN(const SimJob job, ReadSimJob(job_, machine.npus(), console));
    ETUDE_ASSIGN_OR_RETURN(const SimResult result, Simulate(machine, job.workload));
    WarnOfSilences(machine, machine_.system.empty() ? "--system" : machine_.system, job.workload,
                   result, console.context());
    const Arrivals arrivals(machine, job.workload, result);
    const SimAccount account = AccountOf(job.workload, result, arrivals);
    const auto diagnosis = Diagnose(job.workload, result, arrivals);
    Print({.machine = machine,
           .job = job,
           .result = result,
           .account = account,
           .diagnosis = diagnosis},
          console);
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
  };

  void Print(const Simulated& step, const Console& console) const {
    const std::vector<Table> tables = SimTables(step.machine, step.result, step.account);
    if (output_.csv()) {
      const std::string& key = output_.table().empty() ? tables.front().key : output_.table();
      console.PrintData(ToCsv(*std::ranges::find(tables, key, &Table::key)));
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
                                   {"finished", !step.diagnosis},
                                   {"step_ns", step.account.step},
                                   {"messages", step.result.messages},
                                   {"notes", step.job.notes}};
    if (step.diagnosis) json["waiting"] = ToJson(*step.diagnosis);
    for (const Table& table : tables) {
      if (output_.table().empty() || output_.table() == table.key) json[table.key] = ToJson(table);
    }
    return json;
  }

  std::string TextOf(const Simulated& step, const std::vector<Table>& tables) const {
    std::string text;
    if (output_.table().empty()) {
      text += fmt::format(
          "{} {}: {} in {}, {}\n", step.diagnosis ? "stuck after" : "step time",
          FormatTime(Nanos{step.account.step}), FormatCount(step.result.class_of.size(), "rank"),
          FormatCount(step.result.ranks.size(), "class", "classes"), machine_.model);
      text += ToText(step.machine);
    }
    for (const Table& table : tables) {
      // What ranks do is short in "times".
      const bool is_wanted =
          output_.table().empty() ? table.key != "ranks" : output_.table() == table.key;
      if (is_wanted) text += etude::ToText(WithoutZeros(table), output_.top());
    }
    for (const std::string& note : step.job.notes) text += "note: " + note + "\n";
    return text;
  }

  SimJobOptions job_;
  MachineOptions machine_;
  TableOutput output_;
};

}  // namespace

std::unique_ptr<Command> MakeSimulateCommand() { return std::make_unique<SimulateCommand>(); }

}  // namespace etude
