#pragma once

#include <cstdint>
#include <optional>

#include "src/base/result.h"
#include "src/synth/device/device_model.h"
#include "src/synth/device/measured_products.h"
#include "src/synth/job/step_job.h"

namespace etude {

// Sources of durations of computations.
struct TimeSources {
  std::optional<MeasuredProducts> measured;  // takes precedence over the device
  std::optional<DeviceModel> device;
};

// Numbers of computations in the job's programs.
struct TimedWorks {
  int64_t measured = 0;
  int64_t modelled = 0;
  int64_t unknown = 0;
};

// Sets the durations of computations, but not of communications. kBadInput from RooflineTime, and
// if the total of a rank's computations is too long.
Result<TimedWorks> TimeWorks(const TimeSources& sources, StepJob& job);

}  // namespace etude
