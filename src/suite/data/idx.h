#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude::suite {

// An array of bytes as MNIST's files have it (LeCun's idx format, element type 8).
struct IdxArray {
  std::vector<int64_t> sizes;
  std::string bytes;  // row by row
};

// Reads `path`, or `path`.gz where only that is there. kIo if neither is, kBadInput if it is none.
Result<IdxArray> ReadIdx(const std::string& path, const RunContext& context);

}  // namespace etude::suite
