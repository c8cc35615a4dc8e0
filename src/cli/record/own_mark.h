#pragma once

#include <string>

#include "src/formats/job/job_json.h"

namespace etude {

// Returns why the job's command is not accepted as run by this user on this machine; "" if it is. A
// recording writes a mark into job.json, made with a key that only its user can read
// (python/etude/recording/marks.py makes both). Folders from elsewhere have no valid mark.
std::string WhyNotOwn(const JobFile& job);

}  // namespace etude
