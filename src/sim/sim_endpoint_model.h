#pragma once

#include <cstdint>
#include <string_view>

#include "src/sim/machine.h"
#include "src/sim/travel.h"

namespace etude {

// What a message of a collective costs at the ends of its way.
class SimEndpointModel {
 public:
  explicit SimEndpointModel(const SystemModel& system)
      : delay_(system.endpoint_delay), bytes_per_second_(system.memory_bandwidth * 1e9) {}

  static constexpr std::string_view name() { return "astra-sim-2.0/endpoint-delay"; }
  // Before it is sent, ns.
  int64_t Delay(bool in_group) const { return in_group ? kGroupDelay : delay_; }
  // Of adding it to what the rank has, ns: two operands are read and the sum is written.
  int64_t Reduction(int64_t bytes) const {
    if (bytes_per_second_ <= 0) return 0;
    return 3 * WholeNanos(static_cast<double>(bytes) / bytes_per_second_ * 1e9);
  }

 private:
  static constexpr int64_t kGroupDelay = 10;  // ns

  int64_t delay_ = 0;  // ns
  double bytes_per_second_ = 0;
};

}  // namespace etude
