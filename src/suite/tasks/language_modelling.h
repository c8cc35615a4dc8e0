#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C19: language modelling by BERT (Devlin et al., 1810.04805): masked words, and whether one text
// follows another. Paper scale: BERT-base on the user's documents. Smoke scale: width 128 and two
// layers on descriptions of Debian packages.
Result<std::unique_ptr<Task>> MakeLanguageModelling(const TaskOptions& options);

}  // namespace etude::suite
