#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/report/text/table.h"
#include "src/sim/program/sim_program.h"
#include "src/sim/result/sim_path.h"

namespace etude {

// Keys of the tables, in order.
inline const std::vector<std::string> kSimPathTables = {"path_parts", "path_ranks", "path_names",
                                                        "path"};

// Returns the name of a node of a rank's program; "" if it is unknown.
using SimNodeNames = std::function<std::string(int64_t rank, uint32_t node)>;

// Returns tables of a simulated job's critical path: time by part, by rank and by name, and the
// stretches. Times of each of the first three tables add up to the length of the path.
std::vector<Table> SimPathTables(const SimPath& path, const SimWorkload& workload,
                                 const SimNodeNames& names);

}  // namespace etude
