#include "src/sim/machine/fitted_network.h"

#include <utility>

#include <fmt/format.h>

#include "src/sim/machine/algorithm_rules.h"
#include "src/sim/machine/graph_machine.h"
#include "src/sim/network/network_graph.h"

namespace etude {
namespace {

constexpr std::string_view kGloo = "gloo";

}  // namespace

Result<SimMachine> MachineOf(const FittedNetwork& network, const MeasuredMachine& measured,
                             int64_t ranks) {
  if (ranks < 1 || ranks > kMostNpus) {
    return BadInput(fmt::format("found {} ranks, expected 1 to {}", ranks, kMostNpus));
  }
  const double link = network.bytes_per_second * 1e-9;
  const double latency = static_cast<double>(network.latency_ns);
  NetworkGraph graph({{.topology = fmt::format("Shared({})", ranks),
                       .npus = ranks,
                       .bandwidth = link,
                       .latency = latency}});
  const uint32_t in = graph.AddDevice("memory");
  const uint32_t out = network.shared_bytes_per_second ? graph.AddDevice("memory's end") : in;
  for (uint32_t rank = 0; rank < static_cast<uint32_t>(ranks); ++rank) {
    graph.AddOneWay({.from = rank, .to = in, .bandwidth = link, .latency = latency});
    graph.AddOneWay({.from = out, .to = rank, .bandwidth = link});
  }
  if (network.shared_bytes_per_second) {
    const double shared = *network.shared_bytes_per_second * 1e-9;
    graph.AddOneWay({.from = in, .to = out, .bandwidth = shared});
  }
  SimMachine machine;
  ETUDE_RETURN_IF_ERROR(UseGraph(std::move(graph), {}, "the fitted network", machine));
  for (const CollectiveType type : {CollectiveType::kAllReduce, CollectiveType::kAllGather,
                                    CollectiveType::kReduceScatter, CollectiveType::kAllToAll}) {
    machine.system.algorithms[type].resize(1);
  }
  if (measured.backend == kGloo) {
    ETUDE_RETURN_IF_ERROR(UseAlgorithmRules("", std::string(kGlooRules), machine));
  }
  machine.system.endpoint_delay = network.handling_ns;
  // The model reads two operands and writes the sum.
  machine.system.memory_bandwidth = 3 * network.added_bytes_per_second.value_or(0) * 1e-9;
  return machine;
}

Result<SimMachine> ParseFittedMachine(std::string_view text, const std::string& path,
                                      int64_t ranks) {
  ETUDE_ASSIGN_OR_RETURN(const MachineFile file, ParseMachineFile(text, path));
  if (!file.network) {
    return BadInput(path +
                    ": missing [network], which `etude calibrate` fits to communications of "
                    "several sizes");
  }
  return MachineOf(*file.network, file.machine, ranks);
}

}  // namespace etude
