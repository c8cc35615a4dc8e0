#include "src/suite/nn/detection/average_precision.h"

#include <gtest/gtest.h>

#include <vector>

namespace etude::suite {
namespace {

TEST(AveragePrecision, IsTheMeanOverElevenRecalls) {
  // Recall 1/2 at precision 1, recall 1 at 2/3: six recalls of 1 and five of 2/3.
  EXPECT_NEAR(ElevenPointPrecision({true, false, true}, 2), (6 + 5 * 2.0 / 3) / 11, 1e-12);
  EXPECT_NEAR(ElevenPointPrecision({true}, 10), 2.0 / 11, 1e-12);
  EXPECT_NEAR(ElevenPointPrecision({false, true}, 1), 0.5, 1e-12);
  EXPECT_EQ(ElevenPointPrecision({true, true}, 2), 1);
  EXPECT_EQ(ElevenPointPrecision({}, 2), 0);
}

TEST(AveragePrecision, CountsEachObjectOnceAndDifficultOnesNot) {
  const std::vector<Annotation> truth = {
      {.size = {100, 100},
       .objects = {{.box = {0, 0, 10, 10}, .label = 0},
                   {.box = {50, 50, 60, 60}, .label = 0, .difficult = true},
                   {.box = {0, 0, 10, 10}, .label = 1}}},
      {.size = {100, 100}, .objects = {{.box = {20, 20, 40, 40}, .label = 0}}}};
  // Class 0, best first: right, difficult, duplicate, right. Class 1: overlap of exactly half.
  // Class 2 has no objects and does not count.
  const std::vector<std::vector<Detection>> found = {{{{0, 0, 10, 11}, 0, 0.9F},
                                                      {{50, 50, 60, 60}, 0, 0.8F},
                                                      {{0, 0, 10, 10}, 0, 0.7F},
                                                      {{0, 0, 10, 20}, 1, 0.9F},
                                                      {{0, 0, 10, 10}, 2, 0.9F}},
                                                     {{{20, 20, 40, 40}, 0, 0.6F}}};
  const double of_first = (6 + 5 * 2.0 / 3) / 11;
  EXPECT_NEAR(MeanAveragePrecision(truth, found, 3), of_first / 2, 1e-12);
  EXPECT_EQ(MeanAveragePrecision({}, {}, 3), 0);
}

}  // namespace
}  // namespace etude::suite
