#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C16: ranking distillation (Tang & Wang, KDD 2018). The first steps train a large Caser, the
// others a small one, from the same data and from the large one's best answers. Paper scale: 100
// and 50 wide, on Gowalla; smoke scale: 32 and 16, on where airplanes fly. Quality is the small
// one's.
Result<std::unique_ptr<Task>> MakeLearningToRank(const TaskOptions& options);

}  // namespace etude::suite
