#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/report/inspected.h"

namespace etude {

// A recorded job with the times of its own nodes: how long its graph alone takes. `jobs`: traces
// read at a time.
Result<Inspected> SimulateRecordedTimes(const std::vector<std::string>& paths, int64_t jobs,
                                        bool strict, const RunContext& context);

}  // namespace etude
