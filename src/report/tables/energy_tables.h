#pragma once

#include <string>
#include <vector>

#include "src/report/text/table.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/result/account.h"
#include "src/sim/result/energy.h"

namespace etude {

// Keys of the tables, in order: parts of the step's energy, and the energy of each rank's device.
inline const std::vector<std::string> kEnergyTables = {"energy", "energy_ranks"};

std::vector<Table> EnergyTables(const EnergyFigures& figures, const StepEnergy& energy,
                                const SimResult& result, const SimAccount& account);

}  // namespace etude
