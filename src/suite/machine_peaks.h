#pragma once

#include <cstdint>
#include <string>

#include "src/base/result.h"
#include "src/suite/results/characterization.h"

namespace etude::suite {

// Measures the best rates of a device with `threads` threads: a product of square float32 matrices
// and a copy that exceeds the caches. Takes about a second. Starts PyTorch's threads in this
// process.
Result<MachinePeaks> MeasurePeaks(const std::string& device, int64_t threads);

}  // namespace etude::suite
