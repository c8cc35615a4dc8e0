#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C13: the volume of an object from one picture, learned from silhouettes by Perspective
// Transformer Nets. Paper scale: chairs of ShapeNet; smoke scale: generated solids.
Result<std::unique_ptr<Task>> MakeObjectReconstruction(const TaskOptions& options);

}  // namespace etude::suite
