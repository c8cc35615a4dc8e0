#pragma once

#include <string>

#include "src/suite/results/run_record.h"

namespace etude::suite {

// Returns a run in MLPerf Training's log format (mlcommons/logging, training rules 6.0): lines that
// begin with ":::MLLOG", times in milliseconds since 1970. Organisation and platform are
// placeholders; the division is open, because tasks and targets are not MLPerf's.
std::string MlLog(const RunRecord& run);

}  // namespace etude::suite
