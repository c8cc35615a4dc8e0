#pragma once

#include <cstddef>
#include <string>

namespace etude::recorder {

// Called on the thread that allocates or frees; `bytes` is 0 for what is freed. Must not throw.
using AllocationReport = void (*)(const void* address, size_t bytes);

// Has `report` called for each piece of memory that PyTorch's allocator of the CPU gives out from
// now on, and for each of these when it is freed. For the time of watching an allocator of ours
// stands before PyTorch's. Memory that it gave out, and storages that keep it for their growth,
// work on afterwards, and report on. Memory that was given out before is reported at most when it
// is freed. False, with `why`, where the program has set an allocator that cannot be watched. Not
// thread-safe.
bool WatchAllocations(AllocationReport report, std::string& why);
void UnwatchAllocations();

}  // namespace etude::recorder
