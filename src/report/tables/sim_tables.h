#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/report/text/table.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/machine/machine.h"
#include "src/sim/result/account.h"
#include "src/sim/result/diagnosis.h"

// A simulated step for people and programs.
namespace etude {

// "times", "ranks", "collectives", "links", "roofline": keys of the tables.
const std::vector<std::string>& SimTableNames();
std::vector<Table> SimTables(const SimMachine& machine, const SimWorkload& workload,
                             const SimResult& result, const SimAccount& account);

// What is understood of the machine's files, with units.
std::string ToText(const SimMachine& machine);
nlohmann::ordered_json ToJson(const SimMachine& machine);

nlohmann::ordered_json ToJson(const SimDiagnosis& diagnosis);

}  // namespace etude
