#pragma once

#include <string>

#include "src/suite/results/run_record.h"

namespace etude::suite {

// A run as MLPerf Training logs it (mlcommons/logging, training rules 6.0): lines that begin with
// ":::MLLOG", times in milliseconds since 1970. A submission's organisation and platform are
// Etude's placeholders; the division is open, as tasks and targets are not MLPerf's.
std::string MlLog(const RunRecord& run);

}  // namespace etude::suite
