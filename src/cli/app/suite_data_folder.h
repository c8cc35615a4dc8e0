#pragma once

#include <string>

namespace etude {

// Returns the default folder of data sets: $ETUDE_SUITE_DATA, or a folder in the user's cache.
std::string DefaultSuiteData();

}  // namespace etude
