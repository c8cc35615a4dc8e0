#include "src/sim/result/busy_time.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(BusyTime, EachInstantOnce) {
  BusyTime busy;
  EXPECT_EQ(busy.Total(), 0);
  busy.Add(0, 10);
  busy.Add(10, 12);
  busy.Add(20, 30);
  busy.Add(25, 35);  // 20 to 35
  EXPECT_EQ(busy.Total(), 12 + 15);
  busy.Add(40, 50);
  busy.Add(11, 60);  // all since 11
  EXPECT_EQ(busy.Total(), 60);
  busy.Add(70, 70);
  EXPECT_EQ(busy.Total(), 60);
}

}  // namespace
}  // namespace etude
