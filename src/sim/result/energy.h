#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/sim/engine/simulator.h"
#include "src/sim/machine/machine.h"
#include "src/sim/result/account.h"

// Energy of a simulated step. Defined in docs/models/energy.md.
namespace etude {

inline constexpr std::string_view kEnergyModel = "energy-1";

// Power of devices and hosts, and energy of links. Figures without a value are unknown.
struct EnergyFigures {
  std::string device;                   // its name; "": none
  std::optional<double> idle;           // W, of a device at any time
  std::optional<double> compute;        // W, of a device that computes
  std::optional<double> communication;  // W, of a device that communicates
  std::optional<double> host;           // W, of a host at any time
  int64_t ranks_per_host = 1;
  std::vector<double>
      per_byte;                // J per byte and link: by dimension, or one for all; empty: unknown
  std::string per_byte_place;  // "energy.toml:9:19", for messages; "": none
};

// Energy of a rank's device in J, or of all devices; nullopt: unknown.
struct DeviceEnergy {
  std::optional<double> idle;           // at idle power, for the whole step
  std::optional<double> compute;        // in addition, while it computes
  std::optional<double> communication;  // in addition, while it communicates

  std::optional<double> total() const;
};

struct StepEnergy {
  std::vector<DeviceEnergy> classes;  // of each rank of a class
  DeviceEnergy devices;               // sums over all ranks
  std::optional<double> hosts;        // nullopt: not counted
  std::optional<double> network;      // nullopt: not counted
  std::vector<std::string> notes;     // parts that are unknown or not counted, one line each

  // Returns the sum of all parts that are counted; nullopt if the devices' energy is unknown.
  std::optional<double> total() const;
};

// Returns the energy of a step that ended. kBadInput, with the place of the figures, if they do not
// fit the network.
Result<StepEnergy> EnergyOf(const EnergyFigures& figures, const SimMachine& machine,
                            const SimResult& result, const SimAccount& account);

}  // namespace etude
