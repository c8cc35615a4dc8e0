#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/report/certificate/run_facts.h"
#include "src/suite/results/run_record.h"
#include "src/suite/run.h"

namespace etude::suite {

// What the user says of a run instead of the task, by option: {"rate": "0.01", "frozen": "yes"}.
// Without what a record has in members of its own in any case: device, precision, ranks.
NamedTexts SettingsOf(const RunOptions& options);

// That `data` has another data set of the task than runs that are there already.
std::string OtherDataSetText(std::string_view task, const std::string& data,
                             std::string_view data_set, std::string_view of_runs);

struct AskedRun {
  const RunOptions& options;
  std::string_view task = {};  // by id
  std::string_view mode = {};  // "quality", "steps"
  int64_t ranks = 1;
  std::string data_set;  // "": any
};

// kBadInput if the record at `path` is of another task, scale, mode or seed than its name says,
// which is that of the run that is asked for; kUsage, naming what differs, if its settings are
// others. While the run is not complete, its most steps may be others. A record that is older than
// settings counts as made with the task's own where it shows no others.
Status CheckKept(const std::string& path, const RunRecord& kept, const AskedRun& asked);

}  // namespace etude::suite
