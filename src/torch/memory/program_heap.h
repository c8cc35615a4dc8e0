#pragma once

#include <cstdint>

namespace etude {

// Makes the C library's heap behave as in a program that has just started, whatever was read and
// planned before, and lets it adapt to the tensors that are freed from now on.
//
// glibc serves large blocks by mmap and gives the heap's free top back to the system; what counts
// as large grows with the largest such block that was freed, up to 32 MiB (mallopt(3),
// M_MMAP_THRESHOLD). That decides how many page faults a step of a program costs, and a replay has
// to do as the program did. FixHeap stops the adapting: call it before anything large is freed.
// FollowTensors does it anew, for tensors on the CPU only; no tensor may be there that was made
// between the two. Where the C library is another, or
// its environment variables say how its heap is, both do nothing.
void FixHeap();
void FollowTensors();
// Raises what counts as large to `bytes`, as far as the program had got; never lowers it.
void RaiseMapThreshold(int64_t bytes);
// What counts as large now; 0 where the heap is not set.
int64_t MapThreshold();
// From now on the heap gives nothing back, and takes large blocks too: fewest page faults. False,
// and nothing is done, where the heap is not to be set.
bool KeepFreed();
// Of the tensors that are freed from now on, the first so many bytes are given back to the system:
// who uses them next gets new pages. The heap keeps their addresses. Needs FollowTensors.
void GiveBack(int64_t bytes);

}  // namespace etude
