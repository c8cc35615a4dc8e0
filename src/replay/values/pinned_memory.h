#pragma once

#include <unordered_set>

#include "src/run/step/data_flow.h"
#include "src/run/step/recorded_step.h"

namespace etude {

// The host's memory out of which the step copies to a device without waiting for the copy. A
// program asks for that where the memory is pinned, which no trace tells: else the copy is waited
// for anyhow.
std::unordered_set<StorageVersion> FindPinned(const RecordedStep& step, const DataFlow& flow);

}  // namespace etude
