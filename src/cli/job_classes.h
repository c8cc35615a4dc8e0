#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/cli/command.h"
#include "src/transform/read_job.h"

namespace etude {

struct JobClassesRequest {
  std::vector<RankInput> inputs;
  std::string output;  // a folder, made if need be
  int64_t jobs = 0;    // ranks read at a time
  bool json = false;
};

// Writes all ranks as one job of rank classes (formats/job_folder.h).
Result<ExitCode> WriteJobClasses(const JobClassesRequest& request, const Console& console);

}  // namespace etude
