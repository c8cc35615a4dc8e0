#include "src/suite/data/text/bleu.h"

#include <cmath>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace etude::suite
