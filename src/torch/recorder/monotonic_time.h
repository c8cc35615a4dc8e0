#pragma once

#include <time.h>

#include "src/base/units.h"

namespace etude {

inline Nanos MonotonicTime() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Nanos{int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec};
}

}  // namespace etude
