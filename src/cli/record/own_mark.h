#pragma once

#include <string>

#include "src/formats/job/job_json.h"

namespace etude {

// Why the job's command does not count as one that this user ran on this machine; "" if it does.
// A recording leaves a mark in job.json that needs a key which only its user can read
// (python/etude/recording/marks.py makes both): a folder from elsewhere has none that fits.
std::string WhyNotOwn(const JobFile& job);

}  // namespace etude
