#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C1: image classification by a residual network (He, 1512.03385). Paper scale: ResNet-50,
// 25,557,032 parameters, with the stride in the 3 × 3 convolution ("v1.5"), on ImageNet. Smoke
// scale: ResNet-14 with 16, 32 and 64 channels (section 4.2 there), on 4,000 handwritten digits.
Result<std::unique_ptr<Task>> MakeImageClassification(const TaskOptions& options);

}  // namespace etude::suite
