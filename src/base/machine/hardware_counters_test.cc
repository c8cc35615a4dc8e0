#include "src/base/machine/hardware_counters.h"

#include <linux/perf_event.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace etude {
namespace {

using Value = CounterSet::Reading::Value;

CounterSet::Reading ReadingOf(std::optional<Value> first) {
  CounterSet::Reading reading;
  reading.values[0] = first;
  return reading;
}

TEST(HardwareCounters, DifferencesAreScaledByTheTimeTheyRan) {
  const auto before = ReadingOf(Value{.count = 100, .enabled_ns = 10, .running_ns = 10});
  const auto whole = ReadingOf(Value{.count = 300, .enabled_ns = 110, .running_ns = 110});
  const auto half = ReadingOf(Value{.count = 300, .enabled_ns = 110, .running_ns = 60});
  EXPECT_DOUBLE_EQ(*CounterSet::Between(before, whole)[0], 200);
  EXPECT_DOUBLE_EQ(*CounterSet::Between(before, half)[0], 400);
}

TEST(HardwareCounters, WhatDidNotRunIsUnknown) {
  const auto before = ReadingOf(Value{.count = 100, .enabled_ns = 10, .running_ns = 10});
  const auto stood = ReadingOf(Value{.count = 100, .enabled_ns = 90, .running_ns = 10});
  EXPECT_FALSE(CounterSet::Between(before, stood)[0]);
  EXPECT_FALSE(CounterSet::Between(before, ReadingOf(std::nullopt))[0]);
  EXPECT_FALSE(CounterSet::Between(before, before)[1]);
}

TEST(HardwareCounters, NoneIsSaid) {
  const CounterSet none = CounterSet::Attach(-5);
  EXPECT_NE(none.why_none(), "");
  EXPECT_FALSE(none.Read().values[0]);
}

// Counts events of a child and its descendants from its exec on. Uses software events, which every
// kernel that allows events has.
TEST(HardwareCounters, CountAProcessAndWhatItStarts) {
  CounterEvents events;
  events.fill({"page_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS});
  events[1] = {"absent", PERF_TYPE_SOFTWARE, 1u << 20};
  int gate[2];
  ASSERT_EQ(pipe(gate), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    char byte = 0;
    if (read(gate[0], &byte, 1) != 1) _exit(1);
    execl("/bin/sh", "sh", "-c", "/bin/true; /bin/true", static_cast<char*>(nullptr));
    _exit(1);
  }
  const CounterSet counters = CounterSet::Attach(child, events);
  const auto before = counters.Read();
  EXPECT_EQ(write(gate[1], "x", 1), 1);
  close(gate[0]);
  close(gate[1]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  if (!counters.why_none().empty()) GTEST_SKIP() << counters.why_none();
  EXPECT_EQ(before.values[0]->count, 0u);
  const auto counts = CounterSet::Between(before, counters.Read());
  ASSERT_TRUE(counts[0]);
  EXPECT_GT(*counts[0], 50);
  EXPECT_FALSE(counts[1]);
}

}  // namespace
}  // namespace etude
