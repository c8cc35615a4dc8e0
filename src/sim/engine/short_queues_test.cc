#include "src/sim/engine/short_queues.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <random>

namespace etude {
namespace {

// Compares with deques: empty, single-value and longer queues share a pool.
TEST(ShortQueues, FirstComeFirstServed) {
  std::mt19937 random(1);
  ShortQueues<int> queues;
  std::array<ShortQueues<int>::Queue, 5> got;
  std::array<std::deque<int>, 5> expected;
  for (int i = 0; i < 20'000; ++i) {
    const size_t at = random() % got.size();
    if (random() % 2 == 0) {
      queues.Push(got[at], i);
      expected[at].push_back(i);
    } else if (!expected[at].empty()) {
      ASSERT_EQ(queues.Pop(got[at]), expected[at].front()) << i;
      expected[at].pop_front();
    }
    ASSERT_EQ(got[at].empty(), expected[at].empty()) << i;
  }
}

}  // namespace
}  // namespace etude
