#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C11: the next frames of a video from the first two and the actions of a robot, by convolutional
// dynamic neural advection. Paper scale: robot pushing; smoke scale: generated videos.
Result<std::unique_ptr<Task>> MakeVideoPrediction(const TaskOptions& options);

}  // namespace etude::suite
