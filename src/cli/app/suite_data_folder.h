#pragma once

#include <string>

namespace etude {

// Where data sets are unless somebody says: $ETUDE_SUITE_DATA, else in the user's cache.
std::string DefaultSuiteData();

}  // namespace etude
