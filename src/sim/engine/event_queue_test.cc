#include "src/sim/engine/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace etude {
namespace {

TEST(EventQueue, AtOneTimeInTheOrderOfPlanning) {
  EventQueue<int> events;
  events.Plan(1000, 1);
  events.Plan(7, 2);
  events.Plan(1000, 3);
  EXPECT_EQ(events.Take(), 2);
  EXPECT_EQ(events.now(), 7);
  events.Plan(1000, 4);
  events.Plan(7, 5);
  for (const int expected : {5, 1, 3, 4}) EXPECT_EQ(events.Take(), expected);
  EXPECT_EQ(events.now(), 1000);
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(events.count(), 5u);
}

// Compares with all planned events sorted by time.
TEST(EventQueue, RandomTimes) {
  std::mt19937 random(1);
  EventQueue<size_t> events;
  std::vector<std::pair<int64_t, size_t>> left;
  size_t next = 0;
  for (int round = 0; round < 1000; ++round) {
    for (auto i = random() % 3; i > 0; --i) {
      const int64_t delay = static_cast<int64_t>(random() % 8) << (random() % 50);
      events.Plan(events.now() + delay, next);
      left.emplace_back(events.now() + delay, next++);
    }
    if (left.empty()) continue;
    const auto first = std::ranges::min_element(left);
    ASSERT_EQ(events.Take(), first->second) << round;
    ASSERT_EQ(events.now(), first->first) << round;
    left.erase(first);
    ASSERT_EQ(events.empty(), left.empty());
  }
}

}  // namespace
}  // namespace etude
