#pragma once

#include <string>

#include "src/base/result.h"

namespace etude {

// Loads a shared library that registers operators (TORCH_LIBRARY), for the lifetime of the process.
// Runs its initialization code. kBadInput with the loader's message if loading fails.
Status LoadOperatorLibrary(const std::string& path);

}  // namespace etude
