#include "src/base/machine/process_usage.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include <gtest/gtest.h>

namespace etude {
namespace {

constexpr size_t kPages = 4096;

// Allocates a block, touches its pages and frees it.
void TouchPages() {
  const size_t bytes = kPages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  std::memset(memory, 1, bytes);
  munmap(memory, bytes);
}

TEST(ProcessUsage, CountsFaults) {
  const ProcessCounts before = ProcessCounts::Now();
  TouchPages();
  const ProcessCounts used = ProcessCounts::Now() - before;
  EXPECT_GE(used.minor_faults, static_cast<int64_t>(kPages));
  EXPECT_GE(used.voluntary_switches, 0);
}

TEST(ProcessUsage, CountsWaits) {
  const ProcessCounts before = ProcessCounts::Now();
  for (int i = 0; i < 3; ++i) usleep(1000);
  EXPECT_GE((ProcessCounts::Now() - before).voluntary_switches, 3);
}

TEST(ProcessUsage, PeakIsThatSinceItBegan) {
  const auto level = ResidentBytes();
  if (!level) GTEST_SKIP() << "this system does not tell the resident set";
  EXPECT_EQ(ResidentBytes(getpid()).has_value(), true);
  PeakResident peak;
  EXPECT_FALSE(peak.bytes());
  TouchPages();
  peak.Begin();
  const auto before = peak.bytes();
  if (!before) GTEST_SKIP() << "this kernel keeps one peak for the whole life";
  const int64_t size = static_cast<int64_t>(kPages) * sysconf(_SC_PAGESIZE);
  TouchPages();
  // The kernel counts in batches: allow for some megabytes less.
  EXPECT_GT(peak.bytes()->count, before->count + size / 2);
  peak.Begin();
  EXPECT_LT(peak.bytes()->count, before->count + size / 2);
}

TEST(ProcessUsage, NobodyHasNoMemory) { EXPECT_FALSE(ResidentBytes(-1)); }

}  // namespace
}  // namespace etude
