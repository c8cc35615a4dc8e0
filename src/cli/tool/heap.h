#pragma once

namespace etude {

// Lets the C library keep what is freed and asks the kernel for large pages, where both know how
// and a program needs more than a few MB: a tenth less CPU time on a trace of 30 MB, of which the
// rest of the program knows nothing. Call it before there is a second thread.
void PrepareHeap();

}  // namespace etude
