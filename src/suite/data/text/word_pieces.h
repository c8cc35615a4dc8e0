#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/data/text/vocabulary.h"

namespace etude::suite {

// A vocabulary of word pieces, like BERT's (Wu et al., 1609.08144). Pieces that do not begin a word
// have the prefix "##". Immutable.
class WordPieces {
 public:
  // Reads a piece per line. Its number is that of the line, from 0. Returns kBadInput if there is
  // no piece, or a piece occurs twice.
  static Result<WordPieces> Read(const std::string& path, const RunContext& context);

  int64_t size() const { return std::ssize(numbers_); }
  std::optional<int64_t> NumberOf(const std::string& piece) const;
  // Splits a text in lower case. Words end at blanks and at ASCII signs, which are words. Each word
  // becomes the longest piece at its beginning, then the longest at the beginning of the rest, and
  // so on. It becomes `unknown` if no piece fits, or after 100 bytes.
  Tokens Split(std::string_view text, int64_t unknown) const;

 private:
  std::unordered_map<std::string, int64_t> numbers_;
};

}  // namespace etude::suite
