#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C9: object detection by Faster R-CNN (Ren, 1506.01497). Paper scale: ResNet-101 with its last
// stage for the boxes, 9 anchors and 20 classes, 47,462,111 parameters, on VOC 2007. Smoke scale:
// five convolutions and 3 anchors, 3 shapes on generated pictures.
Result<std::unique_ptr<Task>> MakeObjectDetection(const TaskOptions& options);

}  // namespace etude::suite
