#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude {

// {"1": [0, 1], "2": [2, 3]}: the ranks of process groups by name, as ASTRA-sim is given them.
using GroupRanks = std::map<std::string, std::vector<int64_t>>;

// As the text of such a file; 2 comes before 10.
std::string GroupRanksText(const GroupRanks& groups);
Result<GroupRanks> ReadGroupRanks(const std::string& path, const RunContext& context);

}  // namespace etude
