#pragma once

#include <cstdint>

namespace etude::recorder {

// Measures the recorder's cost per cheap operator beyond the time that it counts itself, in ns:
// PyTorch's preparation of the call, and reading the clock. Compares, on this thread, calls with
// callbacks that request the same data as the recorder's with calls without callbacks; takes less
// than a millisecond. Returns 0 if it cannot be measured, for example with recording disabled on
// this thread.
int64_t MeasureCallback();

}  // namespace etude::recorder
