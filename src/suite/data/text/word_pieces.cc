#include "src/suite/data/text/word_pieces.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/text/printable.h"

namespace etude::suite {
namespace {

constexpr size_t kLongestWord = 100;

}  // namespace

Result<WordPieces> WordPieces::Read(const std::string& path, const RunContext& context) {
  WordPieces pieces;
  ETUDE_RETURN_IF_ERROR(ForEachTextLine(path, context, [&](std::string_view line) -> Status {
    const int64_t number = std::ssize(pieces.numbers_);
    if (!line.empty() && pieces.numbers_.emplace(line, number).second) return {};
    return BadInput(
        fmt::format("{}:{}: found '{}', expected a piece of a word that no other line has", path,
                    number + 1, Printable(line.substr(0, 60))));
  }));
  if (pieces.numbers_.empty()) return BadInput(path + ": empty, expected a piece of a word a line");
  return pieces;
}

std::optional<int64_t> WordPieces::NumberOf(const std::string& piece) const {
  const auto found = numbers_.find(piece);
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

Tokens WordPieces::Split(std::string_view text, int64_t unknown) const {
  Tokens tokens;
  for (const std::string& word : SplitText(text, /*joints=*/false)) {
    Tokens pieces;
    for (size_t begin = 0; begin < word.size();) {
      std::optional<int64_t> piece;
      size_t end = word.size() <= kLongestWord ? word.size() : begin;
      for (; end > begin && !piece; --end) {
        const std::string part = word.substr(begin, end - begin);
        piece = NumberOf(begin == 0 ? part : "##" + part);
        if (piece) break;
      }
      if (!piece) {
        pieces = {unknown};
        break;
      }
      pieces.push_back(*piece);
      begin = end;
    }
    tokens.insert(tokens.end(), pieces.begin(), pieces.end());
  }
  return tokens;
}

}  // namespace etude::suite
