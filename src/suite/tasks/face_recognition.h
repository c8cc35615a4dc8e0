#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C8: recognition of faces in colour and depth. Paper scale: ResNet-50 with four channels and 253
// people, on folders of scans. Smoke scale: a ResNet-8 on rendered scans of twenty heads.
Result<std::unique_ptr<Task>> MakeFaceRecognition(const TaskOptions& options);

}  // namespace etude::suite
