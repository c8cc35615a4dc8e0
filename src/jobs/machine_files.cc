#include "src/jobs/machine_files.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "src/formats/io/byte_source.h"
#include "src/jobs/output_files.h"
#include "src/sim/machine/algorithm_rules.h"
#include "src/sim/machine/astra_config.h"
#include "src/sim/machine/fitted_network.h"
#include "src/sim/machine/graph_machine.h"
#include "src/sim/machine/network_text.h"
#include "src/sim/machine/timed_machine.h"
#include "src/sim/network/network_files.h"
#include "src/sim/plan/collective_plan.h"
#include "src/sim/program/workload.h"

namespace etude {
namespace {

// Returns the path of a prefix of files that a configuration names. It is relative to the working
// folder, as in ASTRA-sim, or else to the configuration.
std::string PathBeside(const std::string& config, const std::string& name, const char* suffix) {
  if (CheckRegular(name + suffix) && ByteSource::Open(name + suffix, {})) return name;
  const size_t slash = config.rfind('/');
  if (name.starts_with('/') || slash == std::string::npos) return name;
  return config.substr(0, slash + 1) + name;
}

// Uses a ring in each dimension. Links that are shared carry no more than they must.
void UseRings(SimMachine& machine) {
  machine.system.bandwidth_aware = machine.graph != nullptr && machine.dims.size() > 1;
  for (const CollectiveType type : {CollectiveType::kAllReduce, CollectiveType::kAllGather,
                                    CollectiveType::kReduceScatter, CollectiveType::kAllToAll}) {
    machine.system.algorithms[type].resize(machine.dims.size());
  }
}

// Reads an execution plan of MSCCL++.
Status ReadPlan(const std::string& config, const std::string& name, CollectiveType type,
                SimMachine& machine, const RunContext& context) {
  const std::string path = PathBeside(config, name, "");
  ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, context.limits));
  ETUDE_ASSIGN_OR_RETURN(CollectivePlan plan, ParseCollectivePlan(text, path));
  if (plan.type != type) {
    return BadInput(fmt::format("{}: found a plan of {}, expected one of {}", path, Name(plan.type),
                                Name(type)));
  }
  machine.system.plans[type] = std::make_shared<const CollectivePlan>(std::move(plan));
  return {};
}

Status ReadNetwork(const MachineFiles& files, SimMachine& machine, const RunContext& context) {
  const bool of_dims = IsNetworkOfDims(files.network);
  const std::string where = of_dims ? "--network" : files.network;
  std::string text;
  if (of_dims) {
    const Result<std::string> network = NetworkOfDims(files.network);
    if (!network) return MakeError(ErrorCode::kUsage, "--network: " + network.error().message);
    text = *network;
  } else {
    ETUDE_ASSIGN_OR_RETURN(text, ReadWholeFile(files.network, context.limits));
  }
  const auto checked = [&](Status status) -> Status {
    if (status || !of_dims) return status;
    return MakeError(ErrorCode::kUsage, status.error().message);
  };
  const bool is_of_astra = (IsListOfDims(text) && !of_dims) || !files.system.empty() ||
                           !files.memory.empty() || !files.congestion.empty();
  const bool is_graph = files.model.empty() ? files.least_loaded || !files.algorithms.empty() ||
                                                  !is_of_astra || NeedsGraph(text)
                                            : files.model == "etude-1";
  if (!is_graph) {
    if (files.least_loaded) {
      return MakeError(ErrorCode::kUsage, "--routes requires --model etude-1");
    }
    if (!files.algorithms.empty()) {
      return MakeError(ErrorCode::kUsage, "--algorithms requires --model etude-1");
    }
    machine.congestion = files.congestion == "aware";
    return checked(ParseAstraNetwork(text, where, machine));
  }
  if (!files.congestion.empty()) {
    return MakeError(ErrorCode::kUsage,
                     "--congestion requires --model astra-sim-2.0: messages of etude-1 always "
                     "share links");
  }
  Result<NetworkGraph> graph = ParseNetworkGraph(text, where);
  if (!graph) return checked(tl::unexpected<Error>(graph.error()));
  machine.routes = files.least_loaded ? RouteChoice::kLeastLoaded : RouteChoice::kHashed;
  return UseGraph(*std::move(graph), files.slow_links, where, machine);
}

}  // namespace

Result<SimMachine> ReadMachine(const MachineFiles& files, bool strict, const RunContext& context) {
  SimMachine machine;
  ETUDE_RETURN_IF_ERROR(ReadNetwork(files, machine, context));
  std::string text;
  AstraCollectives collectives;
  if (files.system.empty()) {
    UseRings(machine);
  } else {
    ETUDE_ASSIGN_OR_RETURN(text, ReadWholeFile(files.system, context.limits));
    ETUDE_ASSIGN_OR_RETURN(collectives, ParseAstraSystem(text, files.system, machine));
    ETUDE_RETURN_IF_ERROR(SpreadAlgorithms(files.system, machine));
  }
  if (!files.memory.empty()) {
    ETUDE_ASSIGN_OR_RETURN(text, ReadWholeFile(files.memory, context.limits));
    ETUDE_RETURN_IF_ERROR(ParseAstraMemory(text, files.memory, machine));
  }
  if (!files.algorithms.empty()) {
    std::string rules;
    if (files.algorithms != kGlooRules) {
      ETUDE_ASSIGN_OR_RETURN(rules, ReadWholeFile(files.algorithms, context.limits));
    }
    ETUDE_RETURN_IF_ERROR(UseAlgorithmRules(rules, files.algorithms, machine));
  }
  machine.system.queues = files.queues;
  machine.system.rendezvous = files.rendezvous;
  machine.system.endpoint_delay *= files.injection_scale;
  ETUDE_RETURN_IF_ERROR(ReadCollectives(collectives, files.system, strict, context, machine));
  return machine;
}

Status ReadCollectives(const AstraCollectives& collectives, const std::string& config, bool strict,
                       const RunContext& context, SimMachine& machine) {
  for (const auto& [type, name] : collectives) {
    if (name.ends_with(".json")) {
      ETUDE_RETURN_IF_ERROR(ReadPlan(config, name, type, machine, context));
      continue;
    }
    ETUDE_RETURN_IF_ERROR(
        ReadPrograms(type, PathBeside(config, name, ".0.et"), strict, context, machine));
    machine.system.program_names[type] = name;
  }
  return {};
}

int64_t CountPrograms(const std::string& prefix, const SimMachine& machine) {
  if (machine.graph == nullptr) return machine.npus();
  int64_t count = 1;
  while (count < machine.npus() && IsThere(RankFileOf(prefix, count))) ++count;
  return count;
}

Status ReadPrograms(CollectiveType type, const std::string& prefix, bool strict,
                    const RunContext& context, SimMachine& machine) {
  ETUDE_ASSIGN_OR_RETURN(SimWorkload programs, ReadSimFiles(prefix, CountPrograms(prefix, machine),
                                                            {.strict = strict}, context));
  machine.system.programs[type] = std::move(programs.ranks);
  return {};
}

Result<SimMachine> ReadFittedMachine(const std::string& file, int64_t ranks,
                                     const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(file, context.limits));
  return ParseFittedMachine(text, file, ranks);
}

Result<SimMachine> ReadTimedMachine(const std::string& file, int64_t ranks,
                                    const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(file, context.limits));
  ETUDE_ASSIGN_OR_RETURN(TimedMachine timed, ParseTimedMachine(text, file));
  SimMachine machine;
  machine.dims = {{.shape = NetworkShape::kGraph, .npus = ranks}};
  machine.times = std::move(timed.times);
  machine.cores = timed.cores;
  return machine;
}

}  // namespace etude
