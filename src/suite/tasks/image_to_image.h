#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C5: translation between photographs and label maps, learned without pairs, by CycleGAN. Paper
// scale: the authors' networks on Cityscapes; smoke scale: smaller ones on generated streets.
Result<std::unique_ptr<Task>> MakeImageToImage(const TaskOptions& options);

}  // namespace etude::suite
