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

// {"1": [0, 1], "2": [2, 3]}: the ranks of process groups by name, as ASTRA-sim is given them.
using GroupRanks = std::map<std::string, std::vector<int64_t>>;

// As the text of such a file; 2 comes before 10.
std::string GroupRanksText(const GroupRanks& groups);
Result<GroupRanks> ReadGroupRanks(const std::string& path, const RunContext& context);

// The file that `etude generate` puts beside PREFIX.RANK.et, if all `traces` are of one PREFIX and
// it is there; else "".
std::string GroupsBeside(const std::vector<std::string>& traces);

// kBadInput, with `path`, if `groups` contradict what a rank does: it calls a group that it is not
// in, lists other members, or is of a job with fewer ranks.
Status CheckGroupRanks(const std::string& path, const GroupRanks& groups, const CommLog& log);

// How traces of a job call their groups, and which of these they list.
class GroupNames {
 public:
  void Add(const CommLog& log);

  // Gives `groups`, read from the file at `path` ("": from none), the names that the traces have
  // for them: generators that calculate with floating-point numbers write "3.0" for "3". Warns of
  // groups whose ranks nobody lists, which are those that call them, and of groups of ranks with
  // traces that none of these calls.
  void Apply(const std::string& path, GroupRanks& groups, const RunContext& context) const;

 private:
  struct Calls {
    uint64_t ranks = 0;      // that call it
    bool is_listed = false;  // a trace says who is in it
  };
  std::map<std::string, Calls> calls_;
  std::set<int64_t> ranks_;
};

// The groups that traces of the job do not list, as far as their ranks are known.
GroupRanks UnlistedGroups(const Job& job);

}  // namespace etude
