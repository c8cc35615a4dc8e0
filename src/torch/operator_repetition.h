#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/units.h"

namespace etude {

// Repeated calls of one operator with the same arguments.
struct OperatorRepetition {
  int64_t least = 0;         // calls; 0: the operator is not repeated
  int64_t most = 0;          // likewise
  Nanos enough;              // no further calls once they took this long in all
  std::vector<Nanos> times;  // of each call
  std::string failure;       // why it cannot be repeated; "" if it was
};

}  // namespace etude
