#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/report/certificate/run_facts.h"
#include "src/suite/results/run_record.h"
#include "src/suite/run.h"

namespace etude::suite {

// Returns the user's settings of a run that replace the task's, by option: {"rate": "0.01",
// "frozen": "yes"}. Excludes those with their own members in a record: device, precision, ranks.
NamedTexts SettingsOf(const RunOptions& options);

// Returns the message that `data` contains another data set of the task than existing runs used.
std::string OtherDataSetText(std::string_view task, const std::string& data,
                             std::string_view data_set, std::string_view of_runs);

struct AskedRun {
  const RunOptions& options;
  std::string_view task = {};  // by id
  std::string_view mode = {};  // "quality", "steps"
  int64_t ranks = 1;
  std::string data_set;  // "": any
};

// Checks that an existing record matches the requested run. kBadInput if the record at `path` has
// another task, scale, mode or seed than its name; kUsage, with the difference, if its settings
// differ. The maximum of steps of an incomplete run may differ. A record without settings, from an
// older version, counts as made with the task's own unless its other members show otherwise.
Status CheckKept(const std::string& path, const RunRecord& kept, const AskedRun& asked);

}  // namespace etude::suite
