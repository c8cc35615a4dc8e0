#include "src/cli/simulate/machine_options.h"

#include "src/cli/simulate/machine_files.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/machine/fault_text.h"
#include "src/sim/machine/link_faults.h"

namespace etude {

void MachineOptions::Declare(Options& options) {
  options.Choice("--model", &model, {"astra-sim-2.0"}, "machine model");
  options.Value("--network", &network, "FILE",
                "ASTRA-sim's network file, or dimensions: \"Ring(8):50GB/s,500ns …\"");
  options.Value("--system", &system, "FILE",
                "ASTRA-sim's system file (default: rings in all dimensions)");
  options.Value("--memory", &memory, "FILE", "ASTRA-sim's remote memory file (default: none)");
  options.Choice("--congestion", &congestion, {"unaware", "aware"},
                 "unaware: messages do not wait for each other on links; aware: they do");
  options.Value("--queues", &queues, "N", "queues of chunks in each dimension",
                {.least = 1, .most = 1024});
  options.Flag("--rendezvous", &rendezvous,
               "send messages only when their receivers wait for them");
  options.Value("--injection-scale", &injection_scale, "N", "factor on the system's endpoint delay",
                {.least = 0, .most = 1'000'000});
  options.Values("--straggler", &stragglers, "RANK:FACTOR",
                 "slow down the computations of a rank by FACTOR, as in 3:1.5");
  options.Values("--slow-link", &slow_links, "A-B:SHARE[+TIME]",
                 "a link that has that share of its bandwidth, and so much more latency, as in "
                 "0-1:0.5+2us; 3@0:0.5: all links of NPU 3 in dimension 0");
}

Result<SimMachine> MachineOptions::Read(const Console& console) const {
  if (network.empty()) {
    return MakeError(ErrorCode::kUsage, "--network: found none, expected a file or dimensions");
  }
  ETUDE_ASSIGN_OR_RETURN(SimMachine machine, ReadMachine({.network = network,
                                                          .system = system,
                                                          .memory = memory,
                                                          .congestion = congestion == "aware",
                                                          .queues = queues,
                                                          .rendezvous = rendezvous,
                                                          .injection_scale = injection_scale},
                                                         console));
  ETUDE_RETURN_IF_ERROR(CheckMachine(machine));
  for (const std::string& text : stragglers) {
    const Status added = AddStragglers(text, machine);
    if (!added) return MakeError(ErrorCode::kUsage, "--straggler: " + added.error().message);
  }
  for (const std::string& text : slow_links) {
    const Status added = AddSlowLinks(text, machine);
    if (!added) return MakeError(ErrorCode::kUsage, "--slow-link: " + added.error().message);
  }
  const Status fits = CheckFaults(machine);
  if (!fits) return MakeError(ErrorCode::kUsage, fits.error().message);
  machine.system.replay_broadcasts = false;
  return machine;
}

}  // namespace etude
