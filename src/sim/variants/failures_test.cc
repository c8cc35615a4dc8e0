#include "src/sim/variants/failures.h"

#include <cmath>

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(Failures, OneRankWithoutRestart) {
  // An interval of ln 2 without checkpoints takes 1 on average: exp(ln 2) - 1.
  const Goodput goodput = GoodputOf({.mtbf = 1, .interval = std::log(2)}, 1);
  EXPECT_NEAR(goodput.useful, std::log(2), 1e-12);
  EXPECT_EQ(goodput.checkpoints, 0);
  EXPECT_NEAR(goodput.lost, 1 - std::log(2), 1e-12);
}

TEST(Failures, RanksShareTheTimeBetweenFailures) {
  const FailureModel model{.mtbf = 3.6e8, .checkpoint = 60, .restart = 600, .interval = 3600};
  const Goodput goodput = GoodputOf(model, 1000);
  EXPECT_DOUBLE_EQ(goodput.mtbf, 3.6e5);
  // 3,600 of e^(1/600) (e^(61/6000) - 1) 360,000 s.
  EXPECT_NEAR(goodput.useful, 3600 / (std::exp(1 / 600.0) * std::expm1(61 / 6000.0) * 3.6e5),
              1e-12);
  EXPECT_NEAR(goodput.useful + goodput.checkpoints + goodput.lost, 1, 1e-12);
  EXPECT_NEAR(goodput.checkpoints, goodput.useful / 60, 1e-12);
}

TEST(Failures, TheBestIntervalIsNearYoungs) {
  // Young 1974: sqrt(2 c m) for checkpoints that are short against the mean time.
  const FailureModel model{.mtbf = 1e6, .checkpoint = 1};
  EXPECT_NEAR(BestInterval(model, 1), std::sqrt(2e6) - 1 + 1 / 3.0, 1);
  FailureModel other = model;
  const double best = GoodputOf(model, 100).useful;
  for (const double factor : {0.5, 0.9, 1.1, 2.0}) {
    other.interval = BestInterval(model, 100) * factor;
    EXPECT_LT(GoodputOf(other, 100).useful, best);
  }
}

TEST(Failures, TheSimulationAgrees) {
  for (const FailureModel& model :
       {FailureModel{.mtbf = 1e5, .checkpoint = 30, .restart = 100},
        FailureModel{.mtbf = 2e4, .checkpoint = 50, .restart = 300, .interval = 200},
        FailureModel{.mtbf = 1e6, .checkpoint = 10, .restart = 0, .interval = 5000}}) {
    EXPECT_NEAR(SimulatedGoodput(model, 10, 200'000, 7), GoodputOf(model, 10).useful, 0.005);
  }
  const FailureModel model{.mtbf = 1e5, .checkpoint = 30, .restart = 100};
  EXPECT_EQ(SimulatedGoodput(model, 10, 1000, 7), SimulatedGoodput(model, 10, 1000, 7));
  EXPECT_NE(SimulatedGoodput(model, 10, 1000, 7), SimulatedGoodput(model, 10, 1000, 8));
}

}  // namespace
}  // namespace etude
