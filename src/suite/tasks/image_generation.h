#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C2: generation of pictures by WGAN with the networks of DCGAN. Paper scale: 64 × 64 pictures of a
// folder such as LSUN's bedrooms; smoke scale: digits of MNIST at 16 × 16.
Result<std::unique_ptr<Task>> MakeImageGeneration(const TaskOptions& options);

}  // namespace etude::suite
