#include "src/suite/data/text/rouge.h"

#include <gtest/gtest.h>

namespace etude::suite {
namespace {

// Lin's example: "police killed the gunman" against "police kill the gunman" and "the gunman kill
// police".
TEST(RougeL, OfLinsExample) {
  EXPECT_DOUBLE_EQ(RougeL({1, 2, 3, 4}, {1, 5, 3, 4}), 0.75);
  EXPECT_DOUBLE_EQ(RougeL({3, 4, 5, 1}, {1, 2, 3, 4}), 0.5);
}

TEST(RougeL, OfDifferentLengths) {
  // 2 of 5 and 2 of 3 words.
  EXPECT_DOUBLE_EQ(RougeL({1, 9, 2, 9, 9}, {1, 2, 3}), 2 * 0.4 * (2.0 / 3) / (0.4 + 2.0 / 3));
  EXPECT_DOUBLE_EQ(RougeL({1, 2, 3}, {1, 9, 2, 9, 9}), RougeL({1, 9, 2, 9, 9}, {1, 2, 3}));
}

TEST(RougeL, OfWhatMatchesWhollyOrNotAtAll) {
  EXPECT_EQ(RougeL({1, 2, 1}, {1, 2, 1}), 1);
  EXPECT_EQ(RougeL({1, 1, 1}, {2, 2}), 0);
  EXPECT_EQ(RougeL({}, {1}), 0);
  EXPECT_EQ(RougeL({1}, {}), 0);
  EXPECT_EQ(RougeL({}, {}), 0);
}

}  // namespace
}  // namespace etude::suite
