#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "src/suite/data/text/vocabulary.h"

namespace etude::suite {

// A dictionary from sentences and their translations: the probability that a word becomes another
// one, without regard to places (IBM model 1; Brown et al. 1993), by five rounds of expectation and
// maximisation. Unknown words are left out.
class WordDictionary {
 public:
  // Of two texts with the same number, each is the other's translation.
  WordDictionary(std::span<const Tokens> sources, std::span<const Tokens> targets);

  // The most probable translation; -1 for words without one.
  int64_t Translate(int64_t word) const;

 private:
  std::unordered_map<int64_t, std::unordered_map<int64_t, double>> probabilities_;
};

}  // namespace etude::suite
