#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "src/sim/machine/machine.h"

namespace etude {

// How long a rank works on something by itself.
class SimComputeModel {
 public:
  virtual ~SimComputeModel() = default;
  virtual std::string_view name() const = 0;

  // Of a computation, ns; nullopt: it is none. `rank`: the rank itself.
  virtual std::optional<int64_t> Time(int64_t rank, const SimNode& node) const = 0;
};

// As recorded, ns; what is not known takes 1.
inline int64_t RecordedTime(const SimNode& node) { return node.duration > 0 ? node.duration : 1; }

// Of a computation by `rank` itself that takes `time` elsewhere, ns.
int64_t StragglerTime(const SimMachine& machine, int64_t rank, int64_t time);

// "astra-sim-2.0/recorded" or "astra-sim-2.0/roofline", with which computations on the host take
// their recorded time; those of stragglers take longer.
std::unique_ptr<SimComputeModel> MakeSimComputeModel(const SimMachine& machine);

}  // namespace etude
