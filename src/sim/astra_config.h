#pragma once

#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/sim/machine.h"

// ASTRA-sim's configuration files. kBadInput with `path` and what was expected.
namespace etude {

Status ParseAstraNetwork(const std::string& text, const std::string& path, SimMachine& machine);
Status ParseAstraSystem(const std::string& text, const std::string& path, SimMachine& machine);
Status ParseAstraMemory(const std::string& text, const std::string& path, SimMachine& machine);

}  // namespace etude
