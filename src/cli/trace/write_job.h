#pragma once

#include <cstdint>
#include <string>

#include "src/base/result.h"
#include "src/cli/app/command.h"
#include "src/jobs/job_classes.h"

namespace etude {

// Writes all ranks as one job of rank classes (formats/job/job_folder.h).
Result<ExitCode> WriteJobClasses(const JobClassesRequest& request, bool json_output,
                                 const Console& console);

struct JobRanksRequest {
  std::string folder;         // of the job
  std::string output;         // a folder, created if missing
  std::string ranks = "all";  // as in ChooseFromRanks
  int64_t jobs = 0;           // ranks written concurrently
};

// Writes a job of rank classes as a Chakra trace of each rank, and the ranks of groups where these
// do not list them.
Result<ExitCode> WriteJobRanks(const JobRanksRequest& request, bool json_output,
                               const Console& console);

}  // namespace etude
