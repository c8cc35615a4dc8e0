#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/run/calls/comm_log.h"
#include "src/trace/job/job.h"

namespace etude {

// The ranks of process groups by name, in ASTRA-sim's form: {"1": [0, 1], "2": [2, 3]}.
using GroupRanks = std::map<std::string, std::vector<int64_t>>;

// Returns the text of such a file. Names are in numeric order: 2 comes before 10.
std::string GroupRanksText(const GroupRanks& groups);
Result<GroupRanks> ReadGroupRanks(const std::string& path, const RunContext& context);

// Returns the file that `etude generate` writes next to PREFIX.RANK.et, if all `traces` have one
// PREFIX and the file exists; otherwise "".
std::string GroupsBeside(const std::vector<std::string>& traces);

// Returns kBadInput, with `path`, if `groups` contradict a rank: it calls a group that does not
// contain it, lists other members, or belongs to a job with fewer ranks.
Status CheckGroupRanks(const std::string& path, const GroupRanks& groups, const CommLog& log);

// The names of groups in the traces of a job, and which groups these traces list.
class GroupNames {
 public:
  void Add(const CommLog& log);

  // Gives `groups`, read from the file at `path` ("": no file), the names in the traces. Generators
  // that calculate with floating-point numbers write "3.0" for "3". Warns of groups whose ranks no
  // trace lists and that consist of their callers. Also warns of groups of ranks with traces that
  // none of these calls.
  void Apply(const std::string& path, GroupRanks& groups, const RunContext& context) const;

 private:
  struct Calls {
    uint64_t ranks = 0;      // that call it
    bool is_listed = false;  // whether a trace lists its members
  };
  std::map<std::string, Calls> calls_;
  std::set<int64_t> ranks_;
};

// Returns the groups that traces of the job do not list, if their ranks are known.
GroupRanks UnlistedGroups(const Job& job);

}  // namespace etude
