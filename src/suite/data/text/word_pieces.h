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

// A vocabulary of pieces of words, as BERT's (Wu et al., 1609.08144): those that begin no word have
// "##" before them. Immutable.
class WordPieces {
 public:
  // A piece a line; its number is the line's, from 0. kBadInput if there is none or one twice.
  static Result<WordPieces> Read(const std::string& path, const RunContext& context);

  int64_t size() const { return std::ssize(numbers_); }
  std::optional<int64_t> NumberOf(const std::string& piece) const;
  // The text in lower case; words end at blanks and at signs of ASCII, which are words. Each word
  // is the longest piece that it begins with, then the longest that the rest begins with, and so
  // on; `unknown` if no piece fits or after 100 bytes.
  Tokens Split(std::string_view text, int64_t unknown) const;

 private:
  std::unordered_map<std::string, int64_t> numbers_;
};

}  // namespace etude::suite
