#include "src/jobs/scaling/data_parallel_step.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/jobs/sim_job.h"
#include "src/jobs/simulated_step.h"
#include "src/report/text/format.h"

namespace etude {
namespace {

constexpr std::string_view kOpenSize = "(N)";

// A network for one rank, which does not communicate.
constexpr std::string_view kOneNpu = "Ring(1):1GB/s,0ns";

std::string WithSize(std::string network, size_t at, int64_t size) {
  return network.replace(at, kOpenSize.size(), fmt::format("({})", size));
}

// `ranks`: nullopt for the recorded rank as it is.
SimJobOptions JobOf(const DataParallelOptions& options, std::optional<int64_t> ranks) {
  SimJobOptions job;
  job.paths = {options.job};
  job.with_recording = options.with_recording;
  job.what_if.data_parallel = ranks;
  if (ranks) job.what_if.bucket = options.bucket;
  return job;
}

// Returns the text of a network for `ranks` ranks, with a number in the place of "(N)". kUsage if
// the other dimensions do not divide the ranks.
Result<std::string> NetworkFor(const MachineOptions& machine, int64_t ranks, bool strict,
                               const RunContext& context) {
  const size_t at = machine.network.find(kOpenSize);
  if (at == std::string::npos) return machine.network;
  MachineOptions least = machine;
  least.network = WithSize(machine.network, at, 1);
  least.stragglers = {};
  least.slow_links = {};
  ETUDE_ASSIGN_OR_RETURN(const SimMachine rest,
                         ReadMachine(least, ranks, strict, context.Unwarned()));
  if (ranks % rest.npus() != 0) {
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("--network: found {} in the other dimensions of '{}', expected a "
                    "divisor of {}",
                    FormatCount(static_cast<uint64_t>(rest.npus()), "NPU"), machine.network,
                    FormatCount(static_cast<uint64_t>(ranks), "rank")));
  }
  return WithSize(machine.network, at, ranks / rest.npus());
}

Result<DataParallelStep> Simulate(const MachineOptions& options, SimMachine machine, SimJob job,
                                  bool strict, const RunContext& context) {
  DataParallelStep made{.ranks = job.job->mesh.size(),
                        .recorded_step = job.recorded_step,
                        .program_step = job.program_step,
                        .recording_taken = job.recording_taken};
  for (const CommEvent& event : job.job->events) {
    ++made.all_reduces;
    made.gradients = made.gradients + event.bytes.value_or(Bytes{});
  }
  ETUDE_ASSIGN_OR_RETURN(const SimulatedStep step,
                         SimulateStep(options, std::move(machine), std::move(job), strict,
                                      /*files_again=*/false, context));
  if (step.result.stopped) return MakeError(ErrorCode::kInterrupted, "interrupted");
  if (step.diagnosis) {
    return BadInput(fmt::format("{}: found ranks that wait forever in the simulation",
                                FormatCount(static_cast<uint64_t>(made.ranks), "rank")));
  }
  const SimTimes times = MeanOf(step.account).times;
  made.step = Nanos{step.account.step};
  int64_t least = times.compute;  // of a rank that is no straggler
  for (const SimClassAccount& ranks : step.account.classes) {
    least = std::min(least, ranks.times.compute);
  }
  made.computation = Nanos{least};
  made.communication = Nanos{times.communication};
  made.exposed = Nanos{times.exposed_communication};
  made.notes = step.job.notes;
  made.machine = step.machine;
  return made;
}

// Adds a note if the step of one rank is not the measured one.
void AddDoubt(DataParallelStep& step) {
  constexpr double kMostDifference = 0.1;
  if (!step.program_step || step.program_step->count <= 0) return;
  const double ratio =
      static_cast<double>(step.step.count) / static_cast<double>(step.program_step->count);
  if (std::abs(ratio - 1) <= kMostDifference) return;
  step.notes.push_back(
      fmt::format("the recorded step takes {} on one rank, and the median of measured steps is {}: "
                  "record again with more --warmup, or on a quieter machine",
                  FormatTime(step.step), FormatTime(*step.program_step)));
}

}  // namespace

Status CheckDataParallel(const DataParallelOptions& options, int64_t ranks, bool strict,
                         const RunContext& context) {
  ETUDE_RETURN_IF_ERROR(WhatIf::Make(JobOf(options, ranks).what_if));
  if (options.machine.machine == kRecordedMachine) {
    return MakeError(ErrorCode::kUsage,
                     "--machine: found 'recorded', expected a file: the recording of one rank has "
                     "no communication");
  }
  const RunContext unwarned = context.Unwarned();
  MachineOptions of_ranks = options.machine;
  ETUDE_ASSIGN_OR_RETURN(of_ranks.network, NetworkFor(options.machine, ranks, strict, unwarned));
  ETUDE_ASSIGN_OR_RETURN(const SimMachine machine, ReadMachine(of_ranks, ranks, strict, unwarned));
  if (machine.npus() == ranks) return {};
  return MakeError(ErrorCode::kUsage,
                   fmt::format("--network: found {}, expected {}; a size N in dimensions, such as "
                               "\"Switch(N):12.5GB/s,5us\", is that of the ranks",
                               FormatCount(static_cast<uint64_t>(machine.npus()), "NPU"),
                               FormatCount(static_cast<uint64_t>(ranks))));
}

Result<DataParallelStep> SimulateOneRank(const DataParallelOptions& options, bool strict,
                                         const RunContext& context) {
  const MachineOptions one{.network = std::string(kOneNpu)};
  ETUDE_ASSIGN_OR_RETURN(SimMachine machine, ReadMachine(one, /*ranks=*/1, strict, context));
  ETUDE_ASSIGN_OR_RETURN(SimJob job, ReadSimJob(JobOf(options, /*ranks=*/std::nullopt),
                                                /*npus=*/1, strict, context));
  if (!job.job->events.empty()) {
    return BadInput(options.job + ": found communication, expected a recording of one rank");
  }
  ETUDE_ASSIGN_OR_RETURN(DataParallelStep step,
                         Simulate(one, std::move(machine), std::move(job), strict, context));
  AddDoubt(step);
  return step;
}

Result<DataParallelStep> SimulateDataParallel(const DataParallelOptions& options, int64_t ranks,
                                              bool strict, const RunContext& context) {
  MachineOptions of_ranks = options.machine;
  ETUDE_ASSIGN_OR_RETURN(of_ranks.network, NetworkFor(options.machine, ranks, strict, context));
  ETUDE_ASSIGN_OR_RETURN(SimMachine machine, ReadMachine(of_ranks, ranks, strict, context));
  ETUDE_ASSIGN_OR_RETURN(SimJob job,
                         ReadSimJob(JobOf(options, ranks), machine.npus(), strict, context));
  return Simulate(of_ranks, std::move(machine), std::move(job), strict, context);
}

}  // namespace etude
