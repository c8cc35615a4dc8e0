#include "src/cli/simulate/machine_arguments.h"

namespace etude {

void DeclareMachine(MachineOptions& machine, std::string_view network_help, Options& options) {
  options.Choice("--model", &machine.model, {"astra-sim-2.0", "etude-1"},
                 "machine model (default: etude-1; astra-sim-2.0 with ASTRA-sim's files or "
                 "--congestion)");
  options.Value(
      "--machine", &machine.machine, "FILE|recorded",
      "machine with known times of communications, instead of --network: measured by `etude "
      "calibrate`, with NCCL's cost model, or recorded: those of the job itself; with --model "
      "etude-1 the network fitted to those of a file");
  options.Value("--network", &machine.network, "FILE", network_help);
  options.Value("--system", &machine.system, "FILE",
                "ASTRA-sim system file (default: rings in all dimensions)");
  options.Value("--memory", &machine.memory, "FILE",
                "ASTRA-sim remote memory file (default: none)");
  options.Value("--algorithms", &machine.algorithms, "gloo|FILE",
                "with etude-1: algorithms of collectives as of c10d's Gloo backend, or by size in "
                "a file, before those of --system");
  options.Choice("--congestion", &machine.congestion, {"unaware", "aware"},
                 "with astra-sim-2.0: messages that share a link wait for each other, or do not "
                 "(default: unaware)");
  options.Choice("--routes", &machine.routes, {"hashed", "least-loaded"},
                 "choice among shortest paths, with etude-1");
  options.Value("--queues", &machine.queues, "N", "number of chunk queues per dimension",
                {.least = 1, .most = 1024});
  options.Flag("--rendezvous", &machine.rendezvous,
               "send a message only after its receiver has started to wait");
  options.Value("--injection-scale", &machine.injection_scale, "N",
                "factor on the system's endpoint delay", {.least = 0, .most = 1'000'000});
  options.Values("--straggler", &machine.stragglers, "RANK:FACTOR",
                 "slow down the computations of a rank by FACTOR, such as 3:1.5");
  options.Values("--slow-link", &machine.slow_links, "A-B:SHARE[+TIME]",
                 "reduce the bandwidth of a link to SHARE and add latency, such as 0-1:0.5+2us; "
                 "3@0:0.5 is all links of NPU 3 in dimension 0");
}

}  // namespace etude
