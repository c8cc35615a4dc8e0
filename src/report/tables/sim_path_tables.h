#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/report/text/table.h"
#include "src/sim/program/sim_program.h"
#include "src/sim/result/sim_path.h"

namespace etude {

// Keys of the tables, in their order.
inline const std::vector<std::string> kSimPathTables = {"path_parts", "path_ranks", "path_names",
                                                        "path"};

// The name of a node of a rank's program; "" if it is not known.
using SimNodeNames = std::function<std::string(int64_t rank, uint32_t node)>;

// The critical path of a simulated job: its time by part, by rank and by name, and its stretches.
// Times of each of the first three add up to the length of the path.
std::vector<Table> SimPathTables(const SimPath& path, const SimWorkload& workload,
                                 const SimNodeNames& names);

}  // namespace etude
