#include "src/suite/data/text/bleu.h"

#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "src/base/random_stream.h"

namespace etude::suite {
namespace {

double ScoreOf(const Tokens& said, const Tokens& reference) {
  Bleu bleu;
  bleu.Add(said, reference);
  return bleu.score();
}

// "the cat sat on the mat" and "the cat is on the mat": 5 of 6 single words match, 3 of 5 pairs, 1
// of 4 triples and 0 of 3 quadruples, which counts as half a match.
TEST(Bleu, OfASentence) {
  EXPECT_NEAR(ScoreOf({1, 2, 3, 4, 1, 5}, {1, 2, 6, 4, 1, 5}),
              100 * std::pow(5.0 / 6 * 3 / 5 * 1 / 4 * 0.5 / 3, 0.25), 1e-9);
}

TEST(Bleu, OfWhatMatchesWhollyOrNotAtAll) {
  EXPECT_DOUBLE_EQ(ScoreOf({1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}), 100);
  EXPECT_EQ(ScoreOf({1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}), 0);
  EXPECT_EQ(ScoreOf({}, {6, 7, 8, 9, 10}), 0);
  EXPECT_EQ(ScoreOf({1, 2, 3}, {1, 2, 3}), 0);  // has no sequence of four words
}

// A word counts at most as often as it occurs in the reference.
TEST(Bleu, RepetitionsAreCut) {
  EXPECT_NEAR(ScoreOf({1, 1, 1, 1, 1, 1, 1}, {1, 2, 3, 4, 1, 5, 6}),
              100 * std::pow(2.0 / 7 * 0.5 / 6 * 0.25 / 5 * 0.125 / 4, 0.25), 1e-9);
}

// Counts of a corpus are added before they are divided, and lengths too: 9 words of 11.
TEST(Bleu, OfACorpus) {
  Bleu bleu;
  bleu.Add({1, 2, 3, 4, 5}, {1, 2, 3, 4, 5, 6});
  bleu.Add({1, 2, 3, 4}, {1, 2, 3, 4, 5});
  EXPECT_NEAR(bleu.score(), 100 * std::exp(1 - 11.0 / 9), 1e-9);
}

// Scores of sacrebleu 2.6.0 for random texts: `corpus_bleu(…, tokenize="none")`, whose smoothing is
// "exp". Texts are longer than their references for odd seeds, and shorter for even ones.
TEST(Bleu, EqualsSacrebleu) {
  constexpr std::array<double, 8> kScores = {
      37.62061981618097,  36.92202622088076, 37.69405305337591,  44.217537009419466,
      45.227995477658474, 26.3584706530185,  40.356704136446545, 39.12653370098985};
  for (size_t i = 0; i < kScores.size(); ++i) {
    RandomStream random(i + 1);
    const auto word = [&] { return static_cast<int64_t>(random.Below(30)); };
    Bleu bleu;
    for (int text = 0; text < 20; ++text) {
      Tokens reference(4 + random.Below(12));
      for (int64_t& one : reference) one = word();
      Tokens said;
      for (const int64_t one : reference) said.push_back(random.Below(10) < 7 ? one : word());
      for (uint64_t changes = random.Below(3); changes > 0; --changes) {
        if (i % 2 == 0) {
          said.push_back(word());
        } else if (said.size() > 1) {
          said.pop_back();
        }
      }
      bleu.Add(said, reference);
    }
    EXPECT_NEAR(bleu.score(), kScores[i], 1e-9) << "seed " << i + 1;
  }
}

}  // namespace
}  // namespace etude::suite
