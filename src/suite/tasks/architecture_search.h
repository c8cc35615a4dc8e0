#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C17: search for a recurrent cell of a language model (ENAS; Pham et al., 1802.03268). Weights
// that all cells share and a controller that draws cells learn in turns. Paper scale: 12 nodes of
// width 1,000 on the Penn Treebank. Smoke scale: 4 nodes of width 64 on synopses of Debian
// packages.
Result<std::unique_ptr<Task>> MakeArchitectureSearch(const TaskOptions& options);

}  // namespace etude::suite
