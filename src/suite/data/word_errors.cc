#include "src/suite/data/word_errors.h"

#include <algorithm>
#include <numeric>

namespace etude::suite {

std::vector<Word> SplitWords(std::span<const int64_t> symbols, std::optional<int64_t> space) {
  std::vector<Word> words;
  bool begins = true;
  for (const int64_t symbol : symbols) {
    if (symbol == space) {
      begins = true;
      continue;
    }
    if (begins) words.emplace_back();
    words.back().push_back(symbol);
    begins = !space;
  }
  return words;
}

int64_t WordErrors(std::span<const Word> said, std::span<const Word> heard) {
  // Errors of turning each prefix of `heard` into the words of `said` so far.
  std::vector<int64_t> errors(heard.size() + 1);
  std::iota(errors.begin(), errors.end(), 0);
  for (size_t i = 0; i < said.size(); ++i) {
    int64_t diagonal = errors[0]++;
    for (size_t j = 0; j < heard.size(); ++j) {
      const int64_t replaced = diagonal + (said[i] == heard[j] ? 0 : 1);
      diagonal = errors[j + 1];
      errors[j + 1] = std::min({replaced, diagonal + 1, errors[j] + 1});
    }
  }
  return errors.back();
}

std::vector<int64_t> CollapseSteps(std::span<const int64_t> steps) {
  std::vector<int64_t> symbols;
  int64_t before = 0;
  for (const int64_t symbol : steps) {
    if (symbol != before && symbol != 0) symbols.push_back(symbol);
    before = symbol;
  }
  return symbols;
}

}  // namespace etude::suite
