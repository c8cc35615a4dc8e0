#pragma once

#include <cstdint>
#include <optional>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// Speed of the element-wise operators of a recorded job on the host.
struct CopyRate {
  Nanos fixed;                // time of a small one
  double nanos_per_byte = 0;  // read or written

  Nanos TimeOf(int64_t bytes) const;
};

// Finds the speed by the host operators that move data and are no matrix products: the median time
// per byte of those with at least 64 KiB, and the median time of those with at most 4 KiB, each
// without the operators that it calls. nullopt if there are no large ones with shapes and times.
std::optional<CopyRate> FindCopyRate(const Trace& trace);

}  // namespace etude
