#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "src/base/result.h"

namespace etude {

// The lists of ASTRA-sim's network file, with a value for each dimension: topology, npus_count,
// bandwidth and latency. They have equal lengths and at least one value.
struct NetworkLists {
  std::array<std::vector<std::string>, 4> of_key;

  size_t dims() const { return of_key[0].size(); }
};

// Reads the lists of a network file. kBadInput with `path` and the place.
Result<NetworkLists> ReadNetworkLists(const std::string& text, const std::string& path);

}  // namespace etude
