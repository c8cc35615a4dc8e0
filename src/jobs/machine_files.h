#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/sim/machine/astra_config.h"
#include "src/sim/machine/machine.h"

namespace etude {

// The files that describe a simulated machine, and additional settings.
struct MachineFiles {
  // "etude-1", "astra-sim-2.0", or "": the former without files and settings of ASTRA-sim, and for
  // networks that only it has.
  std::string model;
  std::string network;        // or its dimensions themselves: "Ring(8):50GB/s,500ns Switch(4):…"
  std::string system;         // "": SystemModel's defaults, rings in all dimensions
  std::string memory;         // "": no remote memory
  std::string algorithms;     // of "etude-1": "gloo", a file of algorithms by size, or ""
  std::string congestion;     // "aware", "unaware", or "": the latter; of ASTRA-sim
  bool least_loaded = false;  // routes of "etude-1"; otherwise they are hashed
  std::vector<std::string> slow_links;  // of "etude-1"
  int64_t queues = 1;                   // per dimension
  bool rendezvous = false;
  int64_t injection_scale = 1;  // for the endpoint delay
};

// Reads the files, and the collectives that are programs. Returns kBadInput with the file and the
// place. `strict`: damaged traces of collectives are refused.
Result<SimMachine> ReadMachine(const MachineFiles& files, bool strict, const RunContext& context);

// Returns the number of programs of a collective, PREFIX.0.et …: one for each NPU, or on a graph as
// many as there are.
int64_t CountPrograms(const std::string& prefix, const SimMachine& machine);
// Reads these programs.
Status ReadPrograms(CollectiveType type, const std::string& prefix, bool strict,
                    const RunContext& context, SimMachine& machine);

// Reads the programs and plans that define collectives, by names in the file `config`.
Status ReadCollectives(const AstraCollectives& collectives, const std::string& config, bool strict,
                       const RunContext& context, SimMachine& machine);

// Makes the network of the model etude-1 that a machine file has, for a job of `ranks` ranks.
// kBadInput if it has none.
Result<SimMachine> ReadFittedMachine(const std::string& file, int64_t ranks,
                                     const RunContext& context);

// Reads a machine file, whose communications have known times, for a job of `ranks` ranks:
// docs/formats/machine.md.
Result<SimMachine> ReadTimedMachine(const std::string& file, int64_t ranks,
                                    const RunContext& context);

}  // namespace etude
