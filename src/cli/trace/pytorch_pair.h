#pragma once

#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/cli/app/command.h"
#include "src/transform/read_job.h"

namespace etude {

struct PyTorchPairRequest {
  std::vector<RankInput> inputs;
  std::string output;  // a folder, made if need be
  bool json = false;
};

// Writes each trace as the pair of files that PyTorch's observer and profiler would have left:
// host.N.json and device.N.json. A trace without a rank is 0 if it is the only one.
Result<ExitCode> WritePyTorchPairs(const PyTorchPairRequest& request, const Console& console);

}  // namespace etude
