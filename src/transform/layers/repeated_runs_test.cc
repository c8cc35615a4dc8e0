#include "src/transform/layers/repeated_runs.h"

#include <gtest/gtest.h>

#include <string_view>

namespace etude {
namespace {

std::vector<RepeatedRun> RunsOf(std::string_view text) {
  return FindRepeatedRuns(std::vector<uint32_t>(text.begin(), text.end()));
}

TEST(RepeatedRuns, AreAsLongAsPossible) {
  EXPECT_EQ(RunsOf("xabcabcabcay"),
            (std::vector<RepeatedRun>{{.begin = 1, .length = 10, .period = 3}}));
  EXPECT_EQ(RunsOf("xabcabcabcay")[0].count(), 3u);
}

TEST(RepeatedRuns, NestIntoLongerOnes) {
  EXPECT_EQ(RunsOf("aabaab"), (std::vector<RepeatedRun>{{.begin = 0, .length = 2, .period = 1},
                                                        {.begin = 0, .length = 6, .period = 3},
                                                        {.begin = 3, .length = 2, .period = 1}}));
}

TEST(RepeatedRuns, WithoutATokenOfItsOwnAPeriodIsFound) {
  EXPECT_EQ(RunsOf("aabbaabb").front(), (RepeatedRun{.begin = 0, .length = 2, .period = 1}));
  EXPECT_EQ(RunsOf("aabbaabb")[1], (RepeatedRun{.begin = 0, .length = 8, .period = 4}));
}

TEST(RepeatedRuns, OfDifferentTokensThereAreNone) {
  EXPECT_TRUE(RunsOf("abcdef").empty());
  EXPECT_TRUE(RunsOf("").empty());
}

}  // namespace
}  // namespace etude
