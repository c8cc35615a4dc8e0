#include "src/suite/data/text/word_pieces.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace etude::suite {
namespace {

// Writes `text` as a vocabulary, and reads it.
Result<WordPieces> PiecesOf(const std::string& text) {
  const std::string path = testing::TempDir() + "word_pieces_test.txt";
  std::ofstream(path) << text;
  return WordPieces::Read(path, RunContext());
}

TEST(WordPieces, LongestFirst) {
  const auto pieces = PiecesOf("[UNK]\nun\n##aff\n##able\n##affab\n,\nü\n##ß\na\n");
  ASSERT_TRUE(pieces.has_value());
  EXPECT_EQ(pieces->size(), 9);
  EXPECT_EQ(pieces->Split("Unable, unaffable", 0), (Tokens{1, 3, 5, 0}));  // "##affab" has no end
  EXPECT_EQ(pieces->Split("unaff ÜSS üß a,a", 0), (Tokens{1, 2, 0, 6, 7, 8, 5, 8}));
  EXPECT_EQ(pieces->Split("", 0), Tokens{});
  EXPECT_EQ(pieces->Split(std::string(101, 'a'), 0), Tokens{0});
}

TEST(WordPieces, OfAFileThatIsNone) {
  for (const char* text : {"", "a\n\nb\n", "a\nb\na\n"}) {
    const auto pieces = PiecesOf(text);
    ASSERT_FALSE(pieces.has_value()) << text;
    EXPECT_EQ(pieces.error().code, ErrorCode::kBadInput);
  }
}

}  // namespace
}  // namespace etude::suite
