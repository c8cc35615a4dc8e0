#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "src/base/result.h"

namespace etude::suite {

// The sound in a WAV or FLAC file, from -1 to 1: float [samples], the mean of its channels. kIo if
// the file cannot be opened; kBadInput if it is none, is damaged or has not `rate` samples a
// second.
Result<at::Tensor> ReadAudio(const std::string& path, int64_t rate);

}  // namespace etude::suite
