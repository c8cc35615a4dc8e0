#include "src/suite/nn/text/beam_search.h"

#include <cmath>

#include <gtest/gtest.h>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr int64_t kWords = 7;  // 4, 5 and 6 are real words

// Returns the logarithms of the words' probabilities.
at::Tensor Row(std::initializer_list<float> probabilities) {
  return FromValues(std::vector<float>(probabilities), {kWords}).log();
}

// After 4 the best text continues worse than after 5, which requires two beams to find.
at::Tensor Chances(const at::Tensor& before) {
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < before.size(0); ++i) {
    const auto last = before[i][before.size(1) - 1].item<int64_t>();
    if (last == kStartToken) {
      rows.push_back(Row({0, 0, 0, 0.3F, 0.4F, 0.3F, 0}));
    } else if (last == 4) {
      rows.push_back(Row({0, 0, 0.2F, 0, 0.3F, 0.25F, 0.25F}));
    } else {
      rows.push_back(Row({0, 0, 0.9F, 0, 0.05F, 0.05F, 0}));
    }
  }
  return Stack(rows, 0);
}

TEST(BeamSearch, MoreBeamsFindBetterTexts) {
  const auto search = [](int64_t texts, int64_t beams) {
    return Search({.texts = texts, .beams = beams, .longest = 3}, at::kCPU, Chances);
  };
  EXPECT_EQ(search(1, 1), (std::vector<Tokens>{{4, 4, 4}}));
  EXPECT_EQ(search(2, 2), (std::vector<Tokens>{{5}, {5}}));
}

}  // namespace
}  // namespace etude::suite
