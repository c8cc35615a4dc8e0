#include "src/cli/compat/compat_astra_sim.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/text/quantity.h"
#include "src/cli/tool/tool_arguments.h"
#include "src/jobs/group_ranks.h"
#include "src/jobs/machine_files.h"
#include "src/jobs/sim_job.h"
#include "src/jobs/sim_warnings.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/program/workload.h"
#include "src/sim/result/arrivals.h"
#include "src/sim/result/diagnosis.h"
#include "src/sim/result/roofline_use.h"

namespace etude {
namespace {

struct AstraArguments {
  std::string congestion = "unaware";
  std::string workload;
  std::string groups = "empty";
  std::string system;
  std::string memory;
  std::string network;
  std::string logging = "empty";
  std::string log_folder = "log";
  int64_t queues = 1;
  std::string compute_scale = "1";
  std::string comm_scale = "1";
  std::string injection_scale = "1";
  std::string rendezvous = "false";
};

// Parses a bool like ASTRA-sim; nullopt where it stops.
std::optional<bool> TruthOf(std::string_view text) {
  for (const std::string_view word : {"true", "True", "t", "T", "1"}) {
    if (text == word) return true;
  }
  for (const std::string_view word : {"false", "False", "f", "F", "0"}) {
    if (text == word) return false;
  }
  return std::nullopt;
}

// Values in percent, except the last.
void PrintRoofline(const Console& console, int64_t rank, const RooflineUse& use) {
  const std::pair<const char*, double> statistics[] = {
      {"Compute bound percentage", 100 * use.compute_bound},
      {"Average compute utilization", 100 * use.compute},
      {"Average memory utilization", 100 * use.memory},
      {"Average operation intensity", use.intensity}};
  for (const auto& [name, value] : statistics) {
    console.PrintData(fmt::format("[statistics] [info] sys[{}], {}: {:.3f}\n", rank, name, value));
  }
}

void PrintRank(const Console& console, int64_t rank, const SimRankResult& result) {
  const auto statistic = [&](const char* name, int64_t value) {
    console.PrintData(fmt::format("[statistics] [info] sys[{}], {}: {}\n", rank, name, value));
  };
  // ASTRA-sim uses an unsigned difference.
  const auto exposed = static_cast<uint64_t>(result.end - result.computed);
  console.PrintData(fmt::format(
      "[workload] [info] sys[{}] finished, {} cycles, exposed communication {} cycles.\n", rank,
      result.end, exposed));
  statistic("Wall time", result.wall);
  if (result.host > 0) statistic("CPU time", result.host);
  if (result.device > 0) statistic("GPU time", result.device);
  if (result.comm > 0) statistic("Comm time", result.comm);
  if (result.memory > 0) statistic("Remote mem time", result.memory);
  const int64_t overlap = result.device + result.comm - result.wall;
  if (overlap > 0) statistic("Total compute-communication overlap", overlap);
}

}  // namespace

Result<ExitCode> RunAstraSim(std::vector<std::string> args, const Console& console) {
  AstraArguments options;
  ToolArguments parser("astra-sim");
  parser.Text("--congestion", &options.congestion, false);
  parser.Text("--workload-configuration", &options.workload, true);
  parser.Text("--comm-group-configuration", &options.groups, false);
  parser.Text("--system-configuration", &options.system, true);
  parser.Text("--remote-memory-configuration", &options.memory, true);
  parser.Text("--network-configuration", &options.network, true);
  parser.Text("--logging-configuration", &options.logging, false);
  parser.Text("--logging-folder", &options.log_folder, false);
  parser.Whole("--num-queues-per-dim", &options.queues, false);
  parser.Text("--compute-scale", &options.compute_scale, false);
  parser.Text("--comm-scale", &options.comm_scale, false);
  parser.Text("--injection-scale", &options.injection_scale, false);
  parser.Text("--rendezvous-protocol", &options.rendezvous, false);
  ETUDE_RETURN_IF_ERROR(parser.Parse(args));
  if (options.congestion != "aware" && options.congestion != "unaware") {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("compat astra-sim: --congestion: found '{}', expected unaware or "
                                 "aware",
                                 options.congestion));
  }
  const auto injection = ParseWhole(options.injection_scale);
  if (options.queues < 1 || options.queues > 1024 || !injection || *injection < 0) {
    return MakeError(ErrorCode::kUsage,
                     "compat astra-sim: expected 1 to 1024 for --num-queues-per-dim and a whole "
                     "number for --injection-scale");
  }
  const std::optional<bool> rendezvous = TruthOf(options.rendezvous);
  if (!rendezvous) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("compat astra-sim: --rendezvous-protocol: found '{}', expected "
                                 "true or false",
                                 options.rendezvous));
  }
  const RunContext& context = console.context();
  ETUDE_ASSIGN_OR_RETURN(const SimMachine machine,
                         ReadMachine({.model = "astra-sim-2.0",
                                      .network = options.network,
                                      .system = options.system,
                                      .memory = options.memory,
                                      .congestion = options.congestion,
                                      .queues = options.queues,
                                      .rendezvous = *rendezvous,
                                      .injection_scale = *injection},
                                     console.strict(), console.context()));
  const int64_t ranks = machine.npus();
  const ReadOptions read{.strict = console.strict()};
  ETUDE_RETURN_IF_ERROR(CheckRankFiles(options.workload, ranks));
  ETUDE_ASSIGN_OR_RETURN(SimWorkload workload,
                         ReadSimFiles(options.workload, ranks, read, context));
  if (options.groups.find("empty") == std::string::npos) {
    ETUDE_ASSIGN_OR_RETURN(const GroupRanks groups, ReadGroupRanks(options.groups, context));
    ETUDE_ASSIGN_OR_RETURN(workload.groups, NumberedGroups(groups, options.groups, ranks));
  }
  ETUDE_ASSIGN_OR_RETURN(const SimResult result,
                         Simulate(machine, workload, {.name = NamesOfRanks(options.workload)}));
  WarnOfSilences(machine, {.system = options.system, .memory = options.memory}, workload, result,
                 context);
  // By end time, in ASTRA-sim's order of output.
  std::vector<int64_t> order;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    if (result.OfRank(rank).finished) order.push_back(rank);
  }
  std::ranges::stable_sort(order, {}, [&](int64_t rank) { return result.OfRank(rank).end; });
  for (const int64_t rank : order) {
    PrintRank(console, rank, result.OfRank(rank));
    if (!machine.system.roofline) continue;
    PrintRoofline(console, rank, RooflineUseOf(machine, workload, result, rank));
  }
  const Arrivals arrivals(machine, workload, result);
  const auto diagnosis = Diagnose(workload, result, arrivals);
  if (!diagnosis) return ExitCode::kOk;
  for (const std::string& line : WhyStuck(*diagnosis, options.workload)) console.Complain(line);
  return ExitCode::kNo;
}

}  // namespace etude
