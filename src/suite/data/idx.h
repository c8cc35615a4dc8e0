#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude::suite {

// An array of bytes from an MNIST file (LeCun's idx format, element type 8).
struct IdxArray {
  std::vector<int64_t> sizes;
  std::string bytes;  // row-major
};

// Reads `path`, or `path`.gz if only that exists. kIo if neither exists, kBadInput for an invalid
// file.
Result<IdxArray> ReadIdx(const std::string& path, const RunContext& context);

}  // namespace etude::suite
