#include "src/transform/edit/time_shift.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(TimeShift, WhatBeginsWhereTimeIsInsertedIsLater) {
  const TimeShift shift(
      {{.at = Nanos{50}, .length = Nanos{7}}, {.at = Nanos{20}, .length = Nanos{5}}});
  EXPECT_EQ(shift.Begin(Nanos{19}), Nanos{19});
  EXPECT_EQ(shift.Begin(Nanos{20}), Nanos{25});
  EXPECT_EQ(shift.End(Nanos{20}), Nanos{20});
  EXPECT_EQ(shift.End(Nanos{21}), Nanos{26});
  EXPECT_EQ(shift.Begin(Nanos{50}), Nanos{62});
  EXPECT_EQ(shift.BeginOf(0), Nanos{20});
  EXPECT_EQ(shift.BeginOf(1), Nanos{55}) << "after the time inserted before";
}

TEST(TimeShift, ChangesAtOneMomentFollowEachOther) {
  const TimeShift shift(
      {{.at = Nanos{10}, .length = Nanos{3}}, {.at = Nanos{10}, .length = Nanos{4}}});
  EXPECT_EQ(shift.BeginOf(0), Nanos{10});
  EXPECT_EQ(shift.BeginOf(1), Nanos{13});
  EXPECT_EQ(shift.Begin(Nanos{10}), Nanos{17});
}

TEST(TimeShift, APartThatIsCutOutBecomesAMoment) {
  const TimeShift shift(
      {{.at = Nanos{20}, .length = Nanos{-10}}, {.at = Nanos{40}, .length = Nanos{1}}});
  EXPECT_EQ(shift.Begin(Nanos{20}), Nanos{20});
  EXPECT_EQ(shift.Begin(Nanos{25}), Nanos{20});
  EXPECT_EQ(shift.End(Nanos{30}), Nanos{20});
  EXPECT_EQ(shift.Begin(Nanos{31}), Nanos{21});
  EXPECT_EQ(shift.Begin(Nanos{40}), Nanos{31});
}

}  // namespace
}  // namespace etude
