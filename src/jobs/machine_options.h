#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/sim/machine/machine.h"

namespace etude {

// Options for the machine of a simulation, for its commands and Python.
struct MachineOptions {
  std::string model;    // "etude-1", "astra-sim-2.0", or "" as in MachineFiles
  std::string machine;  // machine file, instead of `model` and a network
  std::string network;
  std::string system;
  std::string memory;
  std::string algorithms;
  std::string congestion;
  std::string routes = "hashed";  // or "least-loaded"; of the model "etude-1"
  int64_t queues = 1;
  bool rendezvous = false;
  int64_t injection_scale = 1;
  std::vector<std::string> stragglers;
  std::vector<std::string> slow_links;

  friend bool operator==(const MachineOptions&, const MachineOptions&) = default;
};

// MachineOptions::machine: each communication takes the time that it took in the recording after
// all of its ranks had begun it. Requires SimJobOptions::recorded_communication.
inline constexpr std::string_view kRecordedMachine = "recorded";

// Reads the machine. Returns kUsage with the option for invalid values, and kBadInput for files.
// The machine of a machine file has as many NPUs as the job has ranks, `ranks`.
Result<SimMachine> ReadMachine(const MachineOptions& options, int64_t ranks, bool strict,
                               const RunContext& context);

}  // namespace etude
