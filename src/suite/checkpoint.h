#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude::suite {

// Tensors and facts by name, stored in a safetensors file (huggingface/safetensors: a length in
// eight bytes, a JSON header, the tensors' bytes), which Python reads without running code.
struct Checkpoint {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  std::map<std::string, std::string> facts;
};

// Writes a checkpoint atomically. Tensors may be on any device; supported element types are in the
// table of checkpoint.cc.
Status WriteCheckpoint(const std::string& path, const Checkpoint& checkpoint);

// Copies the file's tensors into those of `into`, which must match in name, type and shape, and
// returns the file's facts. Otherwise kBadInput with the tensor's name, and nothing is copied.
Result<std::map<std::string, std::string>> ReadCheckpoint(
    const std::string& path, const std::vector<std::pair<std::string, at::Tensor>>& into,
    const RunContext& context);

}  // namespace etude::suite
