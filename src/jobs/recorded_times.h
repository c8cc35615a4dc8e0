#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/report/inspected.h"

namespace etude {

// Computes how long the graph of a recorded job takes alone, with the recorded times of its nodes.
// `jobs`: number of traces read at a time.
Result<Inspected> SimulateRecordedTimes(const std::vector<std::string>& paths, int64_t jobs,
                                        bool strict, const RunContext& context);

}  // namespace etude
