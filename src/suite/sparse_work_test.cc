#include "src/suite/sparse_work.h"

#include <gtest/gtest.h>

namespace etude::suite {
namespace {

TEST(SparseWork, StaticTrainingTakesTheShareOfItsForwardPass) {
  EXPECT_DOUBLE_EQ(TrainingShare({.dense = 100, .sparse = 10}, 1000, 0), 0.1);
}

TEST(SparseWork, UpdatesByGradientsTakeADensePass) {
  // 90 steps of 3 * 10, and 10 of 2 * 10 + 100, of 100 dense ones of 300.
  EXPECT_DOUBLE_EQ(TrainingShare({.dense = 100, .sparse = 10}, 100, 10),
                   (90 * 30.0 + 10 * 120.0) / 30'000);
}

TEST(SparseWork, WithoutWorkThereIsNoShare) {
  EXPECT_EQ(TrainingShare({}, 100, 0), 0);
  EXPECT_EQ(TrainingShare({.dense = 1, .sparse = 1}, 0, 0), 0);
}

}  // namespace
}  // namespace etude::suite
