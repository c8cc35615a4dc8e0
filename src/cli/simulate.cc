#include "src/cli/simulate.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "src/cli/machine_options.h"
#include "src/cli/recorded_times.h"
#include "src/cli/sim_job.h"
#include "src/cli/simulated_files.h"
#include "src/cli/table_output.h"
#include "src/report/graph_time_tables.h"
#include "src/report/sim_memory_table.h"
#include "src/report/sim_path_tables.h"
#include "src/sim/sim_path.h"
#include "src/sim/simulator.h"
#include "src/sim/workload.h"

namespace etude {
namespace {

class SimulateCommand : public Command {
 public:
  std::string_view name() const override { return "simulate"; }
  std::string_view summary() const override {
    return "run a job on a simulated machine: how long its step takes there, and why";
  }
  void Declare(Options& options) override {
    job_.Declare(options);
    machine_.Declare(options);
    options.Choice("--times", &times_, {"model", "recorded"},
                   "of nodes: the model's, or those of a recorded job, on no machine");
    files_.Declare(options);
    std::vector<std::string> tables = {"step"};
    tables.insert(tables.end(), kSimPathTables.begin(), kSimPathTables.end());
    tables.emplace_back("sim_memory");
    tables.insert(tables.end(), kGraphTimeTables.begin(), kGraphTimeTables.end());
    output_.Declare(options, std::move(tables));
  }
  Result<ExitCode> Run(const Console& console) override {
    ETUDE_RETURN_IF_ERROR(output_.Check());
    if (times_ == "recorded") return RunRecorded(console);
    ETUDE_RETURN_IF_ERROR(files_.Check(job_, console));
    ETUDE_ASSIGN_OR_RETURN(const SimMachine machine, machine_.Read(console));
    ETUDE_ASSIGN_OR_RETURN(const SimJob job, ReadSimJob(job_, machine.npus(), console));
    ETUDE_ASSIGN_OR_RETURN(const SimResult result, Simulate(machine, job.workload));
    int64_t step = 0;
    for (const SimRankResult& rank : result.ranks) step = std::max(step, rank.wall);
    Table summary{.key = "step",
                  .title = "simulated step",
                  .columns = {{"step_ns", "step time", Unit::kTime},
                              {"ranks", "ranks", Unit::kCount},
                              {"messages", "messages", Unit::kCount}},
                  .rows = {{step, CountCell(result.class_of.size()), CountCell(result.messages)}}};
    Inspected found{.path = job_.paths.front(), .tables = {std::move(summary)}, .notes = job.notes};
    ETUDE_RETURN_IF_ERROR(AddTables(machine, job, result, console, found.tables));
    ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> written,
                           WriteSimulatedFiles(files_, job_, job, result, console));
    found.notes.insert(found.notes.end(), written.begin(), written.end());
    output_.Print("etude-simulate", {found}, console);
    for (size_t rank = 0; rank < result.class_of.size(); ++rank) {
      if (result.OfRank(static_cast<int64_t>(rank)).finished) continue;
      console.Complain(WhatIsWaitedFor(result, job.workload, static_cast<int64_t>(rank)));
      return ExitCode::kNo;
    }
    return ExitCode::kOk;
  }

 private:
  Result<ExitCode> RunRecorded(const Console& console) const {
    if (!machine_.network.empty() || !files_.folder.empty()) {
      return MakeError(ErrorCode::kUsage,
                       "simulate: --times recorded runs on no machine: without --network and -o");
    }
    ETUDE_ASSIGN_OR_RETURN(const Inspected found,
                           SimulateRecordedTimes(job_.paths, job_.jobs, console));
    output_.Print("etude-simulate-recorded", {found}, console);
    return ExitCode::kOk;
  }

  // The critical path, and memory where traces tell.
  Status AddTables(const SimMachine& machine, const SimJob& job, const SimResult& result,
                   const Console& console, std::vector<Table>& tables) const {
    const SimPath path = FindSimPath(machine, job.workload, result);
    for (Table& table : SimPathTables(path, job.workload, NamesOfSimJob(job_, job, console))) {
      tables.push_back(std::move(table));
    }
    ETUDE_ASSIGN_OR_RETURN(std::vector<SimMemoryRow> rows,
                           MemoryOfSimJob(job_, job, result, console));
    if (!rows.empty()) tables.push_back(SimMemoryTable(std::move(rows)));
    return {};
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
