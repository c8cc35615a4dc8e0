#pragma once

#include <cstdint>

namespace etude {

// Control of glibc's heap, which a replay must match because it determines the page faults of a
// step. FixHeap makes the heap behave as in a program that has just started, regardless of earlier
// reading and planning; FollowTensors lets it adapt to the tensors freed from then on.
//
// glibc serves large blocks by mmap and returns the heap's free top to the system. The threshold
// for large blocks grows with the largest mapped block that was freed, up to 32 MiB (mallopt(3),
// M_MMAP_THRESHOLD). FixHeap stops this adaptation; call it before freeing anything large.
// FollowTensors resumes it for CPU tensors only; no tensor made between the two calls may exist.
// Both do nothing with another C library, or if its environment variables configure the heap.
void FixHeap();
void FollowTensors();
// Raises the mmap threshold to `bytes`, the value that the program had reached. Never lowers it.
void RaiseMapThreshold(int64_t bytes);
// Returns the mmap threshold; 0 if the heap is not controlled.
int64_t MapThreshold();
// Makes the heap keep all memory, including large blocks, for a minimum of page faults. Returns
// false without effect if the heap must not be changed.
bool KeepFreed();
// Returns the first `bytes` of the tensors freed from now on to the system, so that their next use
// gets new pages. The heap keeps their addresses. Requires FollowTensors.
void GiveBack(int64_t bytes);

}  // namespace etude
