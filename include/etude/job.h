#pragma once

// Jobs of several ranks: capture folders, files of all ranks, and jobs by rank class.

#include "src/formats/job/capture_folder.h"  // IWYU pragma: export
#include "src/formats/job/job_folder.h"      // IWYU pragma: export
#include "src/jobs/generate/generate_job.h"  // IWYU pragma: export
#include "src/trace/job/job.h"               // IWYU pragma: export
#include "src/transform/read_job.h"          // IWYU pragma: export
