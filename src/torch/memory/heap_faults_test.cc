#include "src/torch/memory/heap_faults.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <c10/core/CPUAllocator.h>

#include "src/base/machine/process_usage.h"
#include "src/torch/memory/program_heap.h"

namespace etude {
namespace {

int64_t Page() { return sysconf(_SC_PAGESIZE); }

TEST(HeapFaultsTest, NothingIsDoneWhereNothingIsKnown) {
  HeapFaults heap;
  heap.Want(std::nullopt);
  for (const int64_t faults : {9000, 9000, 9000, 0}) heap.AfterStep(faults);
  EXPECT_FALSE(heap.keeps_freed());
  EXPECT_EQ(heap.given_back(), 0);
}

TEST(HeapFaultsTest, TheFirstStepDoesNotCount) {
  HeapFaults heap;
  heap.Want(1000);
  heap.AfterStep(50'000);
  heap.AfterStep(1020);
  heap.AfterStep(980);
  EXPECT_FALSE(heap.keeps_freed());
  EXPECT_EQ(heap.given_back(), 0);
}

// These tests change the heap, so they run in separate processes.
TEST(HeapFaultsDeathTest, SoMuchIsGivenBackAsFaultsAreMissing) {
  const auto run = [] {
    HeapFaults heap;
    heap.Want(1000);
    // Returned pages after two steps; the first one does not count.
    const auto after = [&](int64_t faults) {
      heap.AfterStep(50'000);
      heap.AfterStep(faults);
      return heap.given_back() / Page();
    };
    return after(100) == 1000 && heap.keeps_freed() && after(800) == 1200 && after(1100) == 1100 &&
           after(0) == 2100 && after(0) == 3100 && after(0) == 4000;
  };
  EXPECT_EXIT(std::exit(run() ? 0 : 1), testing::ExitedWithCode(0), "");
}

TEST(HeapFaultsDeathTest, AStepOfBlocksMeetsWhatIsWanted) {
  const auto faults_of_steps = [](int64_t wanted) {
    FixHeap();
    FollowTensors();
    HeapFaults heap;
    heap.Want(wanted);
    int64_t faults = 0;
    for (int i = 0; i < 12; ++i) {
      const ProcessCounts before = ProcessCounts::Now();
      heap.BeforeStep();
      // Above glibc's mmap threshold: each block gets new pages, unless the heap keeps them.
      for (int block = 0; block < 3; ++block) {
        const c10::DataPtr data = c10::GetCPUAllocator()->allocate(8 << 20);
        std::memset(data.get(), 1, 8 << 20);
      }
      faults = (ProcessCounts::Now() - before).minor_faults;
      heap.AfterStep(faults);
    }
    return faults;
  };
  // There are 2,048 pages, each used twice.
  for (const int64_t wanted : {0, 700, 4096}) {
    EXPECT_EXIT(std::exit(std::abs(faults_of_steps(wanted) - wanted) <= wanted / 20 + 64 ? 0 : 1),
                testing::ExitedWithCode(0), "");
  }
}

}  // namespace
}  // namespace etude
