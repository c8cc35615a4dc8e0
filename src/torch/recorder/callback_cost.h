#pragma once

#include <cstdint>

namespace etude::recorder {

// What a recorder costs a cheap operator beyond the time that it notes as its own, in nanoseconds:
// PyTorch's preparation of the call, and the edges of reading the clock. Measured on this thread
// with callbacks that ask for what ours ask for and read the clock, against none; takes less than a
// millisecond. 0 where it cannot be told, as with recording switched off on this thread.
int64_t MeasureCallback();

}  // namespace etude::recorder
