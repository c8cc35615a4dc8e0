#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude::suite {

// Tensors and facts by name, in a file of the safetensors format (huggingface/safetensors: a length
// in eight bytes, a JSON header, the tensors' bytes), which Python reads without running code.
struct Checkpoint {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  std::map<std::string, std::string> facts;
};

// Complete or not at all. Tensors of any device; element types: those of the table in the .cc.
Status WriteCheckpoint(const std::string& path, const Checkpoint& checkpoint);

// Copies the file's tensors into those of `into`, which must be the same by name, type and shape,
// and returns the file's facts. kBadInput, naming the tensor, if they are not; then nothing was
// copied.
Result<std::map<std::string, std::string>> ReadCheckpoint(
    const std::string& path, const std::vector<std::pair<std::string, at::Tensor>>& into,
    const RunContext& context);

}  // namespace etude::suite
