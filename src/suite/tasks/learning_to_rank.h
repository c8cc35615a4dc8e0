#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C16: ranking distillation (Tang & Wang, KDD 2018). The first steps train a large Caser, the
// others a small one, from the same data and the large one's best answers. Paper scale: widths 100
// and 50, on Gowalla; smoke scale: 32 and 16, on flight destinations. The quality is the small
// model's.
Result<std::unique_ptr<Task>> MakeLearningToRank(const TaskOptions& options);

}  // namespace etude::suite
