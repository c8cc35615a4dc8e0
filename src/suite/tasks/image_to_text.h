#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C4: image captioning, word by word (Vinyals, 1411.4555). Paper scale: fixed Inception-v3 and an
// LSTM of 512, on MS COCO 2014. Smoke scale: four convolutions and an LSTM of 128, on generated
// scenes.
Result<std::unique_ptr<Task>> MakeImageToText(const TaskOptions& options);

}  // namespace etude::suite
