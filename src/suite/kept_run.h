#pragma once

#include <cstdint>
#include <string>

#include "src/base/result.h"
#include "src/report/run_facts.h"
#include "src/suite/run.h"
#include "src/suite/run_record.h"

namespace etude::suite {

// What the user says of a run instead of the task, by option: {"rate": "0.01", "frozen": "yes"}.
// Without what a record has in members of its own in any case: device, precision, ranks.
NamedTexts SettingsOf(const RunOptions& options);

struct AskedRun {
  const RunOptions& options;
  int64_t ranks = 1;
  std::string data_set;  // "": any
};

// kUsage, naming what differs, if the record at `path` is not of the run that is asked for. While
// the run is not complete, its most steps may be others. A record that is older than settings
// counts as made with the task's own where it shows no others.
Status CheckKept(const std::string& path, const RunRecord& kept, const AskedRun& asked);

}  // namespace etude::suite
