#include "src/cli/simulate.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "src/cli/machine_options.h"
#include "src/cli/sim_job.h"
#include "src/report/format.h"
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
  }
  Result<ExitCode> Run(const Console& console) override {
    ETUDE_ASSIGN_OR_RETURN(const SimMachine machine, machine_.Read(console));
    ETUDE_ASSIGN_OR_RETURN(const SimJob job, ReadSimJob(job_, machine.npus(), console));
    ETUDE_ASSIGN_OR_RETURN(const SimResult result, Simulate(machine, job.workload));
    int64_t step = 0;
    for (const SimRankResult& rank : result.ranks) step = std::max(step, rank.wall);
    console.Print(fmt::format("step time {}\n", FormatTime(Nanos{step})));
    for (const std::string& note : job.notes) console.Print("note: " + note + "\n");
    for (size_t rank = 0; rank < result.class_of.size(); ++rank) {
      if (result.OfRank(static_cast<int64_t>(rank)).finished) continue;
      console.Complain(WhatIsWaitedFor(result, job.workload, static_cast<int64_t>(rank)));
      return ExitCode::kNo;
    }
    return ExitCode::kOk;
  }

 private:
  SimJobOptions job_;
  MachineOptions machine_;
};

}  // namespace

std::unique_ptr<Command> MakeSimulateCommand() { return std::make_unique<SimulateCommand>(); }

}  // namespace etude
