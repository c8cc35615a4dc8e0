#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C12: a recurrent codec of pictures (Toderici et al., 1608.05148), by MS-SSIM. Paper scale:
// ImageNet; smoke scale: photographs of scikit-image.
Result<std::unique_ptr<Task>> MakeImageCompression(const TaskOptions& options);

}  // namespace etude::suite
