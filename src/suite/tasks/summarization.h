#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C14: summarization by a pointer-generator network with coverage (See et al., 1704.04368) and
// attention within the decoder (Paulus et al., 1705.04304). Paper scale: hidden width 512 on
// Gigaword; smoke scale: 64 on descriptions of Debian packages with their synopses as
// summaries.
Result<std::unique_ptr<Task>> MakeSummarization(const TaskOptions& options);

}  // namespace etude::suite
