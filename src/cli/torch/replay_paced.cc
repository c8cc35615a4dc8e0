#include "src/cli/torch/replay_paced.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "src/analysis/compare/replay_match.h"

namespace etude {
namespace {

// Returns the line for a step: JSON without unknown figures.
std::string StepLine(const StepSample& sample) {
  std::string line = fmt::format(
      "{{\"pid\":{},\"wall_ns\":{},\"cpu_ns\":{},\"busy_gaps_ns\":{},\"idle_gaps_ns\":{},"
      "\"minor_faults\":{},\"voluntary_switches\":{},\"involuntary_switches\":{}",
      getpid(), sample.wall.count, sample.cpu.count, sample.gaps.busy.count, sample.gaps.idle.count,
      sample.counts.minor_faults, sample.counts.voluntary_switches,
      sample.counts.involuntary_switches);
  if (sample.resident) line += fmt::format(",\"resident_bytes\":{}", sample.resident->count);
  if (sample.peak_resident) {
    line += fmt::format(",\"peak_resident_bytes\":{}", sample.peak_resident->count);
  }
  return line + "}\n";
}

// Returns the line for the request "kernels".
std::string KernelsLine(const std::optional<KernelMatch>& kernels) {
  const auto share = [](const std::optional<double>& part) {
    return part ? fmt::format("{}", *part) : "null";
  };
  return fmt::format("{{\"same_kernels\":{},\"same_kernels_by_time\":{}}}\n",
                     share(kernels ? kernels->by_count : std::nullopt),
                     share(kernels ? kernels->by_time : std::nullopt));
}

}  // namespace

Status ServePacedSteps(Replayer& replayer, GapMode gaps, const ReplayReport& report,
                       const Console& console) {
  std::string json = ReplayReportJson(report);
  std::erase(json, '\n');
  console.Print(json + "\n");
  std::fflush(stdout);
  char line[256];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    if (std::strcmp(line, "kernels\n") == 0) {
      ETUDE_RETURN_IF_ERROR(replayer.FindKernels());
      console.Print(KernelsLine(replayer.report().kernels));
    } else {
      ETUDE_ASSIGN_OR_RETURN(const StepSample sample, replayer.RunStep(gaps));
      console.Print(StepLine(sample));
    }
    std::fflush(stdout);
  }
  return {};
}

}  // namespace etude
