#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "src/base/machine/gpu_sensors.h"
#include "src/base/machine/hardware_counters.h"
#include "src/base/result.h"
#include "src/cli/app/line_channel.h"
#include "src/cli/record/process_tree.h"
#include "src/report/certificate/run_comparison.h"

namespace etude {

// Answer of a side of a comparison after one step.
struct PacedStep {
  bool counts = true;           // false: a step of another signature, or one under a profiler
  std::string other_signature;  // description of that signature; "" for the recorded one
  StepFigures figures;
};

// Observes steps of one side of a comparison from outside: hardware counters, resident memory of
// its process, and the GPUs of the machine.
class StepWatch {
 public:
  // `counters`: of the side's processes. `level`: bytes in use before the side's first step. The
  // sensors must outlive the object.
  StepWatch(CounterSet counters, const GpuSensors& gpus, std::optional<int64_t> level)
      : counters_(std::move(counters)), gpus_(&gpus), level_(level) {}

  const CounterSet& counters() const { return counters_; }
  bool has_level() const { return level_.has_value(); }

  // Call before requesting a step. `process` runs it; 0 if unknown.
  void Begin(pid_t process);
  // Call repeatedly during the step. Returns the current readings of the GPUs.
  GpuSensors::Reading Look();
  // Call with the side's answer. kInternal for an invalid line.
  Result<PacedStep> End(const std::string& answer);

  static constexpr std::chrono::milliseconds kBetweenLooks{10};

 private:
  // Mean of repeated readings.
  struct Mean {
    double sum = 0;
    int64_t count = 0;
    void Add(const std::optional<double>& value);
    std::optional<double> value() const;
  };

  CounterSet counters_;
  const GpuSensors* gpus_;
  std::optional<int64_t> level_;
  pid_t process_ = 0;
  CounterSet::Reading before_;
  GpuSensors::Reading gpus_before_;
  Mean resident_;
  Mean power_;
  Mean utilisation_;
  Mean memory_utilisation_;
  std::optional<double> gpu_memory_;  // maximum
};

// Waits for the next line of `channel` and calls `look` about every StepWatch::kBetweenLooks.
// nullopt: the other end has gone. kUnavailable with `late` after `time`.
Result<std::optional<std::string>> AwaitLine(ProcessTree& tree, LineChannel& channel,
                                             std::chrono::milliseconds time,
                                             const std::string& late,
                                             const std::function<void()>& look);

}  // namespace etude
