#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/report/text/table.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/machine/machine.h"
#include "src/sim/result/account.h"
#include "src/sim/result/diagnosis.h"

// Tables, text and JSON of a simulated step.
namespace etude {

// Keys of the tables: "times", "ranks", "collectives", "links", "roofline".
const std::vector<std::string>& SimTableNames();
std::vector<Table> SimTables(const SimMachine& machine, const SimWorkload& workload,
                             const SimResult& result, const SimAccount& account);

// Returns the ranks of each class as text: "0-7".
std::vector<std::string> RankTexts(const SimResult& result);

// Returns notes on collectives whose times were noisy, or are beyond the measured sizes.
std::vector<std::string> DoubtfulTimes(const SimMachine& machine, const SimAccount& account);

// Describes the machine as understood, with units.
std::string ToText(const SimMachine& machine);
nlohmann::ordered_json ToJson(const SimMachine& machine);

nlohmann::ordered_json ToJson(const SimDiagnosis& diagnosis);

}  // namespace etude
