#include "src/suite/data/text/vocabulary.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/suite/data/text/next_words.h"
#include "src/suite/data/text/word_dictionary.h"

namespace etude::suite {
namespace {

using Words = std::vector<std::string>;

TEST(SplitText, WordsAndSigns) {
  EXPECT_EQ(SplitText("The GNU-C++ library's 2.6 (dev)"),
            (Words{"the", "gnu-c", "+", "+", "library's", "2.6", "(", "dev", ")"}));
  EXPECT_EQ(SplitText("Öffnet ÜBER × \t x- -x"),
            (Words{"öffnet", "über", "×", "x", "-", "-", "x"}));
  EXPECT_EQ(SplitText("two-part", /*joints=*/false), (Words{"two", "-", "part"}));
  EXPECT_EQ(SplitText(" \x7f\x01 "), Words{});
}

TEST(Vocabulary, MostFrequentWordsFirst) {
  WordCounts counts;
  counts.Add(Words{"b", "a", "c", "a", "d", "b"});
  const Vocabulary all(counts, {.most = 100});
  EXPECT_EQ(all.size(), kFirstToken + 4);
  EXPECT_EQ(all.NumbersOf(Words{"b", "a", "c", "d", "e"}), (Tokens{4, 5, 6, 7, kUnknownToken}));
  EXPECT_EQ(all.WordOf(5), "a");
  EXPECT_EQ(Vocabulary(counts, {.most = 5}).size(), 5);
  EXPECT_EQ(Vocabulary(counts, {.most = 100, .least_count = 2}).size(), kFirstToken + 2);
  EXPECT_EQ(Vocabulary(counts, {.most = 2}).size(), kFirstToken);
}

TEST(Vocabulary, MentionedWordsAreLast) {
  WordCounts counts;
  counts.Mention(Words{"e", "b"});
  counts.Add(Words{"a", "b", "b"});
  const Vocabulary all(counts, {.most = 100, .least_count = 0});
  EXPECT_EQ(all.NumbersOf(Words{"b", "a", "e"}), (Tokens{4, 5, 6}));
  EXPECT_EQ(Vocabulary(counts, {.most = 100}).size(), kFirstToken + 2);
}

TEST(NextWords, FallsBackToTheMostFrequentWord) {
  NextWords next;
  EXPECT_EQ(next.MostFrequent(), -1);
  for (const int64_t word : {7, 8, 8}) next.Add(1, word);
  next.Add(8, 9);
  EXPECT_EQ(next.Behind(1), 8);
  EXPECT_EQ(next.Behind(8), 9);
  EXPECT_EQ(next.Behind(5), 8);
}

// The translation of a word follows from sentences that share it.
TEST(WordDictionary, LearnsFromSentences) {
  const std::vector<Tokens> sources = {{10, 11}, {10, 12}, {13, 12}, {kUnknownToken}};
  const std::vector<Tokens> targets = {{20, 21}, {22, 20}, {23, 22}, {24}};
  const WordDictionary dictionary(sources, targets);
  for (int64_t word = 10; word <= 11; ++word) EXPECT_EQ(dictionary.Translate(word), word + 10);
  EXPECT_EQ(dictionary.Translate(12), 22);
  EXPECT_EQ(dictionary.Translate(13), 23);
  EXPECT_EQ(dictionary.Translate(14), -1);
}

}  // namespace
}  // namespace etude::suite
