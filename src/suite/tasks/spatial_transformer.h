#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C15: a spatial transformer network reads handwritten digits that are rotated, scaled and moved
// (Jaderberg, 1506.02025). The same network of 27,360 parameters at both scales; the smoke scale
// uses a thirteenth of the digits.
Result<std::unique_ptr<Task>> MakeSpatialTransformer(const TaskOptions& options);

}  // namespace etude::suite
