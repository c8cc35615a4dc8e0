#include "src/suite/data/word_errors.h"

#include <gtest/gtest.h>

namespace etude::suite {
namespace {

using Symbols = std::vector<int64_t>;

int64_t ErrorsOf(const Symbols& said, const Symbols& heard) {
  return WordErrors(SplitWords(said, std::nullopt), SplitWords(heard, std::nullopt));
}

TEST(WordErrors, CountsWordsPutInLeftOutAndReplaced) {
  EXPECT_EQ(ErrorsOf({}, {}), 0);
  EXPECT_EQ(ErrorsOf({1, 2, 3}, {1, 2, 3}), 0);
  EXPECT_EQ(ErrorsOf({1, 2, 3}, {}), 3);
  EXPECT_EQ(ErrorsOf({}, {4, 4}), 2);
  EXPECT_EQ(ErrorsOf({1, 2, 3}, {1, 3}), 1);
  EXPECT_EQ(ErrorsOf({1, 3}, {1, 2, 3}), 1);
  EXPECT_EQ(ErrorsOf({1, 2, 3}, {1, 5, 3}), 1);
  EXPECT_EQ(ErrorsOf({1, 2, 3, 4}, {2, 3, 4, 5}), 2);
}

TEST(WordErrors, WordsAreWhatSpacesPart) {
  EXPECT_EQ(SplitWords(Symbols{9, 1, 2, 9, 9, 3, 9}, 9), (std::vector<Word>{{1, 2}, {3}}));
  EXPECT_EQ(SplitWords(Symbols{}, 9), std::vector<Word>{});
  EXPECT_EQ(SplitWords(Symbols{1, 1}, std::nullopt), (std::vector<Word>{{1}, {1}}));
  const auto words = [](const Symbols& symbols) { return SplitWords(symbols, 9); };
  EXPECT_EQ(WordErrors(words({1, 2, 9, 3}), words({1, 2, 3})), 2);
}

TEST(WordErrors, StepsOfCtcCollapse) {
  EXPECT_EQ(CollapseSteps(Symbols{}), Symbols{});
  EXPECT_EQ(CollapseSteps(Symbols{0, 0, 0}), Symbols{});
  EXPECT_EQ(CollapseSteps(Symbols{0, 4, 4, 0, 4, 5, 5, 0}), (Symbols{4, 4, 5}));
}

}  // namespace
}  // namespace etude::suite
