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
  constexpr int kRegion = 256 << 20;  // of addresses; memory only as it is used
  constexpr int kLargestThreshold = 32 << 20;
  constexpr uintptr_t kLargePage = 2 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargestThreshold);
  mallopt(M_TRIM_THRESHOLD, kRegion);
  mallopt(M_TOP_PAD, kRegion);
  // More than the heap has free: it grows by the region.
  void* volatile block = malloc(kLargePage);
  free(block);
  mallopt(M_TOP_PAD, 1 << 20);
  const auto end = reinterpret_cast<uintptr_t>(sbrk(0));
  // Behind 2 to 4 MB of small pages: what needs little takes little.
  const uintptr_t begin = (end - kRegion + 2 * kLargePage - 1) / kLargePage * kLargePage;
  // Advice: where it is not taken, pages are small.
  static_cast<void>(madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE));
}

#else

void PrepareHeap() {}

#endif

}  // namespace etude
