#pragma once

#include <string>

#include "src/base/result.h"
#include "src/sim/result/energy.h"

namespace etude {

// Parses a TOML file of figures for the energy model, docs/formats/energy.md. kBadInput with
// `path`, line and column.
Result<EnergyFigures> ParseEnergyFigures(const std::string& text, const std::string& path);

}  // namespace etude
