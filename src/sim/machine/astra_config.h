#pragma once

#include <map>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/sim/machine/machine.h"

// Parsers of ASTRA-sim's configuration files, with numbers in ASTRA-sim's units or texts with
// units. kBadInput with `path`, the value found and the value expected, also for unknown keys.
namespace etude {

// Returns "; did you mean 'Ring'?" for a word close to a topology name; otherwise "".
std::string TopologyHint(std::string_view word);
Status ParseAstraNetwork(const std::string& text, const std::string& path, SimMachine& machine);
// File name prefixes of collectives that are defined by programs.
using AstraCollectives = std::map<CollectiveType, std::string>;
Result<AstraCollectives> ParseAstraSystem(const std::string& text, const std::string& path,
                                          SimMachine& machine);
Status ParseAstraMemory(const std::string& text, const std::string& path, SimMachine& machine);

}  // namespace etude
