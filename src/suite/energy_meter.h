#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/machine/gpu_sensors.h"

namespace etude::suite {

// The energy that the processors of this machine, or its GPUs, took since this began, whatever ran
// on them: Intel's and AMD's counters (RAPL, /sys/class/powercap) or NVIDIA's. Never a guess.
class EnergyMeter {
 public:
  // `gpus`: of the GPUs, else of the processors. `powercap` is another folder in tests.
  explicit EnergyMeter(bool gpus, const std::string& powercap = "/sys/class/powercap");

  // To be called at least every few minutes: RAPL's counters begin again.
  void Read();
  std::optional<double> joules() const { return joules_; }
  // "" if there are joules.
  const std::string& why_none() const { return why_none_; }

 private:
  struct Counter {
    std::string path;  // of a file with microjoules
    double range = 0;  // microjoules at which it begins again; 0: never
    double last = 0;
  };

  std::optional<double> joules_;
  std::string why_none_;
  std::vector<Counter> counters_;  // one for each processor package
  GpuSensors gpus_;
  std::optional<double> gpu_first_;
};

}  // namespace etude::suite
