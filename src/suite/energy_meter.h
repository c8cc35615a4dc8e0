#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/machine/gpu_sensors.h"

namespace etude::suite {

// Energy of this machine's processors, or of its GPUs, since construction, for all programs
// together. Reads the counters of Intel and AMD (RAPL, /sys/class/powercap) or NVIDIA; never
// estimates.
class EnergyMeter {
 public:
  // `gpus`: measures the GPUs instead of the processors. `powercap` is replaced in tests.
  explicit EnergyMeter(bool gpus, const std::string& powercap = "/sys/class/powercap");

  // Reads the counters. Call at least every few minutes, because RAPL's counters wrap around.
  void Read();
  std::optional<double> joules() const { return joules_; }
  // Returns the reason for missing values; "" if there are joules.
  const std::string& why_none() const { return why_none_; }

 private:
  struct Counter {
    std::string path;  // file with microjoules
    double range = 0;  // microjoules at which the counter wraps around; 0: never
    double last = 0;
  };

  std::optional<double> joules_;
  std::string why_none_;
  std::vector<Counter> counters_;  // one per processor package
  GpuSensors gpus_;
  std::optional<double> gpu_first_;
};

}  // namespace etude::suite
