#pragma once

#include <string>
#include <string_view>

#include "src/base/result.h"

namespace etude {

// Returns whether the text describes dimensions, "Ring(8):…", rather than a file name.
bool IsNetworkOfDims(std::string_view text);

// Converts "Ring(8):50GB/s,500ns Switch(4):25GB/s,1us" to an ASTRA-sim network file. kBadInput with
// the missing part.
Result<std::string> NetworkOfDims(std::string_view dims);

}  // namespace etude
