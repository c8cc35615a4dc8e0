#pragma once

#include <cstdint>
#include <functional>

#include "src/base/result.h"
#include "src/replay/replay_report.h"
#include "src/torch/replayed_step.h"

namespace etude {

// Records a few steps of the replay like the original, and adds a comparison of kernels and
// operator times to the report. If no recording could be written, the report keeps them as unknown;
// this is an error if a recording was requested. `run` runs one step with a mark around it.
Status CompareRecording(const ReplayedStep& step, const std::function<Status(int64_t index)>& run,
                        ReplayReport& report);

}  // namespace etude
