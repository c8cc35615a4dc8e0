#pragma once

#include <string>
#include <vector>

#include "src/base/result.h"

namespace etude {

// The names of what lies in a folder, in their order. kIo if it cannot be read to its end.
Result<std::vector<std::string>> NamesIn(const std::string& folder);

}  // namespace etude
