#pragma once

#include <cstdint>

#include "src/trace/trace.h"

namespace etude {

// Counts host nodes that ran in another process than that of the trace; 0 if either is unknown.
uint64_t CountOfOtherProcess(const Trace& trace);

}  // namespace etude
