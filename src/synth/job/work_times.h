#pragma once

#include <cstdint>
#include <optional>

#include "src/base/result.h"
#include "src/synth/device/device_model.h"
#include "src/synth/device/measured_products.h"
#include "src/synth/job/step_job.h"

namespace etude {

// Where durations of computations are from.
struct TimeSources {
  std::optional<MeasuredProducts> measured;  // before the device
  std::optional<DeviceModel> device;
};

// Computations in the job's programs.
struct TimedWorks {
  int64_t measured = 0;
  int64_t modelled = 0;
  int64_t unknown = 0;
};

// Gives computations their durations, not communications. kBadInput: RooflineTime, and a rank whose
// computations take longer together.
Result<TimedWorks> TimeWorks(const TimeSources& sources, StepJob& job);

}  // namespace etude
