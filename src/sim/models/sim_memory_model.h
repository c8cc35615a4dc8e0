#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "src/sim/machine/machine.h"

namespace etude {

// Durations of accesses to remote memory.
class SimMemoryModel {
 public:
  virtual ~SimMemoryModel() = default;
  virtual std::string_view name() const = 0;

  // Returns the time until the end of an access that begins now, in ns; nullopt: no such memory.
  virtual std::optional<int64_t> Time(int64_t rank, int64_t bytes, int64_t now) = 0;
};

// Makes "astra-sim-2.0/remote-memory".
std::unique_ptr<SimMemoryModel> MakeSimMemoryModel(const RemoteMemory& memory);

}  // namespace etude
