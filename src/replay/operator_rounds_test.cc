#include "src/replay/operator_rounds.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(OperatorRounds, TimeIsTheMedianOfMedians) {
  OperatorRounds rounds;
  rounds.Add({Nanos{10}, Nanos{1000}, Nanos{12}});  // 12
  rounds.Add({Nanos{20}});                          // 20
  rounds.Add({});
  rounds.Add({Nanos{14}, Nanos{18}});  // 16
  EXPECT_EQ(rounds.rounds(), 3);
  const MeasuredCall time = rounds.Time();
  EXPECT_EQ(time.time_ns, 16);
  EXPECT_EQ(time.calls, 6);
  EXPECT_FALSE(rounds.is_stable());
}

TEST(OperatorRounds, AreStableWithEqualRounds) {
  OperatorRounds rounds;
  for (int64_t i = 0; i < kLeastRounds - 1; ++i) rounds.Add({Nanos{100 + i % 2}});
  EXPECT_FALSE(rounds.is_stable());
  rounds.Add({Nanos{100}});
  EXPECT_TRUE(rounds.is_stable());
  EXPECT_FALSE(rounds.Time().noisy);
}

TEST(OperatorRounds, AreNoisyWithDifferentRounds) {
  OperatorRounds rounds;
  for (int64_t i = 0; i < 20; ++i) rounds.Add({Nanos{i % 2 == 0 ? 10'000 : 20'000}});
  EXPECT_FALSE(rounds.is_stable());
  EXPECT_TRUE(rounds.Time().noisy);
  OperatorRounds quick;  // as differently, but all are quick
  for (int64_t i = 0; i < 20; ++i) quick.Add({Nanos{i % 2 == 0 ? 100 : 200}});
  EXPECT_TRUE(quick.is_stable());
  EXPECT_FALSE(quick.Time().noisy);
}

}  // namespace
}  // namespace etude
