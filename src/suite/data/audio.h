#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "src/base/result.h"

namespace etude::suite {

// Reads the sound of a WAV or FLAC file: float [samples] from -1 to 1, the mean of its channels.
// kIo if the file cannot be opened; kBadInput if it is invalid, damaged, or has another sample rate
// than `rate` (samples per second).
Result<at::Tensor> ReadAudio(const std::string& path, int64_t rate);

}  // namespace etude::suite
