#pragma once

#include <string>
#include <string_view>

#include "src/base/result.h"

namespace etude {

// Whether this is meant to be dimensions, "Ring(8):…", not the name of a file.
bool IsNetworkOfDims(std::string_view text);

// "Ring(8):50GB/s,500ns Switch(4):25GB/s,1us" as a network file of ASTRA-sim; kBadInput: says what
// is missing.
Result<std::string> NetworkOfDims(std::string_view dims);

}  // namespace etude
