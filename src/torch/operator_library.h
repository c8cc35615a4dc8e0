#pragma once

#include <string>

#include "src/base/result.h"

namespace etude {

// Loads a shared library that registers operators (TORCH_LIBRARY) into this process, where it
// stays. Its code runs at once. kBadInput with the loader's message if it cannot be loaded.
Status LoadOperatorLibrary(const std::string& path);

}  // namespace etude
