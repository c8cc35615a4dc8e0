#include "src/suite/data/text/next_words.h"

namespace etude::suite {

void NextWords::Add(int64_t before, int64_t word) {
  ++words_[word];
  ++behind_[before][word];
}

int64_t NextWords::Behind(int64_t before) const {
  const auto found = behind_.find(before);
  return found == behind_.end() ? MostFrequent() : Largest(found->second);
}

int64_t NextWords::MostFrequent() const { return Largest(words_); }

int64_t NextWords::Largest(const Counts& counts) {
  int64_t best = -1;
  int64_t most = 0;
  for (const auto& [word, count] : counts) {
    if (count < most || (count == most && word > best)) continue;
    best = word;
    most = count;
  }
  return best;
}

}  // namespace etude::suite
