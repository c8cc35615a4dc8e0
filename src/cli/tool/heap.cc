#include "src/cli/tool/heap.h"

#include <cstdint>
#include <cstdlib>

#if defined(__GLIBC__)
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace etude {

#if defined(__GLIBC__)

void PrepareHeap() {
  constexpr int kRegion = 256 << 20;  // address space; memory is used on demand
  constexpr int kLargestThreshold = 32 << 20;
  constexpr uintptr_t kLargePage = 2 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargestThreshold);
  mallopt(M_TRIM_THRESHOLD, kRegion);
  mallopt(M_TOP_PAD, kRegion);
  // Larger than the free heap, so that the heap grows by the region.
  void* volatile block = malloc(kLargePage);
  free(block);
  mallopt(M_TOP_PAD, 1 << 20);
  const auto end = reinterpret_cast<uintptr_t>(sbrk(0));
  // After 2 to 4 MB of small pages, so that small programs use little.
  const uintptr_t begin = (end - kRegion + 2 * kLargePage - 1) / kLargePage * kLargePage;
  // Only advice: without support, pages stay small.
  static_cast<void>(madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE));
}

#else

void PrepareHeap() {}

#endif

}  // namespace etude
