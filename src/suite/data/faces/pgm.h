#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude::suite {

// Reads the grey picture in a binary PGM file ("P5"): float [1, H, W], from 0 to 1 at the file's
// maximum value, which may take one byte or two. Comments are lines that begin with '#', before
// that value. Returns kIo if the file cannot be read, and kBadInput for another format or missing
// bytes.
Result<at::Tensor> ReadPgm(const std::string& path, const RunContext& context);

}  // namespace etude::suite
