#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/sim/machine/machine_file.h"

namespace etude {

// Communications of a recorded job, as a machine file.
struct JobTimes {
  MachineFile file;
  uint64_t left_out = 0;  // without times, size or type, with members that have no trace, or by
                          // clocks that disagree
};

// Returns the times in outputs of nccl-tests, if all `paths` are that; nullopt if the first is not.
// kBadInput also for a kind and number of ranks in two files.
Result<std::optional<JobTimes>> TimesOfNcclTests(const std::vector<std::string>& paths,
                                                 const RunContext& context);

// Returns a time for each kind, number of ranks and size of communication in a recorded job: the
// mean of collectives, from the last rank's call to the last end, by the clock of the first rank,
// and the lower quartile of messages. Cores of the machine are unknown, and those of
// communications are 0: the recorded times contain the sharing of cores. kBadInput if nothing of it
// is known.
Result<JobTimes> TimesOfJob(const std::vector<std::string>& paths, bool strict,
                            const RunContext& context);

}  // namespace etude
