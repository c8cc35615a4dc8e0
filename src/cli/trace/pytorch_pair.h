#pragma once

#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/cli/app/command.h"
#include "src/transform/read_job.h"

namespace etude {

struct PyTorchPairRequest {
  std::vector<RankInput> inputs;
  std::string output;  // a folder, created if missing
  bool json = false;
};

// Writes each trace as the two files that PyTorch's observer and profiler would have written:
// host.N.json and device.N.json. A single trace without a rank is rank 0.
Result<ExitCode> WritePyTorchPairs(const PyTorchPairRequest& request, const Console& console);

}  // namespace etude
