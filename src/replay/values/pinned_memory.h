#pragma once

#include <unordered_set>

#include "src/run/step/data_flow.h"
#include "src/run/step/recorded_step.h"

namespace etude {

// Returns host memory that the step copies to a device with non_blocking set. Programs use this
// with pinned memory, which traces do not record; for other memory the copy blocks anyway.
std::unordered_set<StorageVersion> FindPinned(const RecordedStep& step, const DataFlow& flow);

}  // namespace etude
