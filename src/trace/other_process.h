#pragma once

#include <cstdint>

#include "src/trace/trace.h"

namespace etude {

// Host nodes that ran in another process than the trace says it is of; 0 where either is unknown.
uint64_t CountOfOtherProcess(const Trace& trace);

}  // namespace etude
