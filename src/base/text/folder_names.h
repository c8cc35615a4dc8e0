#pragma once

#include <string>
#include <vector>

#include "src/base/result.h"

namespace etude {

// Returns the sorted names of a folder's entries. kIo if the folder cannot be read completely.
Result<std::vector<std::string>> NamesIn(const std::string& folder);

}  // namespace etude
