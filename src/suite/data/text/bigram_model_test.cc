#include "src/suite/data/text/bigram_model.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace etude::suite {
namespace {

// 0 occurs three times, 1 twice, 2 once, 3 never. After 0 come 1 twice and 2 once.
const std::vector<int64_t> kText = {0, 1, 0, 1, 0, 2};
constexpr int64_t kWords = 4;

TEST(BigramModel, SmoothsByTheFrequenciesOfWords) {
  const BigramModel model(kText, kWords);
  EXPECT_DOUBLE_EQ(model.Probability(0, 1), (2 + 2 * 0.3) / 5);
  EXPECT_DOUBLE_EQ(model.Probability(0, 3), (0 + 2 * 0.1) / 5);
  EXPECT_DOUBLE_EQ(model.Probability(1, 0), (2 + 1 * 0.4) / 3);
}

TEST(BigramModel, WordsWithoutSuccessorHaveTheFrequenciesOfWords) {
  const BigramModel model(kText, kWords);
  EXPECT_DOUBLE_EQ(model.Probability(2, 0), 0.4);
  EXPECT_DOUBLE_EQ(model.Probability(3, 3), 0.1);
}

TEST(BigramModel, ProbabilitiesAddUpToOne) {
  const BigramModel model(kText, kWords);
  for (int64_t before = 0; before < kWords; ++before) {
    double sum = 0;
    for (int64_t word = 0; word < kWords; ++word) sum += model.Probability(before, word);
    EXPECT_DOUBLE_EQ(sum, 1) << before;
  }
}

TEST(BigramModel, PerplexityBeginsWithTheSecondWord) {
  const BigramModel model(kText, kWords);
  const std::vector<int64_t> text = {0, 1, 0};
  EXPECT_DOUBLE_EQ(model.Perplexity(text), 1 / std::sqrt(0.52 * 0.8));
}

}  // namespace
}  // namespace etude::suite
