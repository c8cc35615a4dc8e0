#pragma once

#include <cstdint>
#include <functional>

#include "src/base/result.h"
#include "src/replay/replay_report.h"
#include "src/torch/replayed_step.h"

namespace etude {

// Records a few steps of the replay as the original was recorded, and puts into the report how they
// compare with it: kernels and times of operators. Where no recording could be written, the report
// keeps saying that they are unknown, unless it was asked for. `run` runs one step with a mark
// around it.
Status CompareRecording(const ReplayedStep& step, const std::function<Status(int64_t index)>& run,
                        ReplayReport& report);

}  // namespace etude
