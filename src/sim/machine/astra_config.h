#pragma once

#include <map>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/sim/machine/machine.h"

// ASTRA-sim's configuration files, with numbers in its units or texts with units. kBadInput with
// `path`, what was found and what was expected, for unknown keys too.
namespace etude {

// "; did you mean 'Ring'?" of what is no topology but near to one; else "".
std::string TopologyHint(std::string_view word);
Status ParseAstraNetwork(const std::string& text, const std::string& path, SimMachine& machine);
// Collectives that are programs: what their files' names begin with.
using AstraCollectives = std::map<CollectiveType, std::string>;
Result<AstraCollectives> ParseAstraSystem(const std::string& text, const std::string& path,
                                          SimMachine& machine);
Status ParseAstraMemory(const std::string& text, const std::string& path, SimMachine& machine);

}  // namespace etude
