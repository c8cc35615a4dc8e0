#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "src/sim/machine/machine.h"

namespace etude {

// Durations of the local work of a rank.
class SimComputeModel {
 public:
  virtual ~SimComputeModel() = default;
  virtual std::string_view name() const = 0;

  // Returns the duration of a computation, in ns; nullopt: not a computation. `rank`: the rank
  // itself, not its class.
  virtual std::optional<int64_t> Time(int64_t rank, const SimNode& node) const = 0;
};

// Returns the recorded duration in ns; 1 if it is unknown.
inline int64_t RecordedTime(const SimNode& node) { return node.duration > 0 ? node.duration : 1; }

// Returns the duration on `rank` of a computation that takes `time` on other ranks, in ns.
int64_t StragglerTime(const SimMachine& machine, int64_t rank, int64_t time);

// Returns the duration of a computation that takes `time` without SimMachine::noise, in ns.
// `node`: index in the rank's program.
int64_t NoisyTime(const SimMachine& machine, int64_t rank, uint32_t node, int64_t time);

// Makes "astra-sim-2.0/recorded" or "astra-sim-2.0/roofline". With the latter, host computations
// take their recorded duration. Computations of stragglers take longer.
std::unique_ptr<SimComputeModel> MakeSimComputeModel(const SimMachine& machine);

}  // namespace etude
