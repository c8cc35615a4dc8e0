#pragma once

#include <cstddef>
#include <string>

namespace etude::recorder {

// Called on the allocating or freeing thread; `bytes` is 0 for a free. Must not throw.
using AllocationReport = void (*)(const void* address, size_t bytes);

// Calls `report` for each allocation of PyTorch's CPU allocator from now on, and for their frees,
// by placing an allocator in front of PyTorch's. Memory that it allocated, and storages that keep
// it for growth, remain valid after UnwatchAllocations and are still reported. Earlier allocations
// are reported at most when they are freed. Returns false and sets `why` if the program uses an
// allocator that cannot be watched. Not thread-safe.
bool WatchAllocations(AllocationReport report, std::string& why);
void UnwatchAllocations();

}  // namespace etude::recorder
