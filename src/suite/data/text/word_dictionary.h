#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "src/suite/data/text/vocabulary.h"

namespace etude::suite {

// A dictionary learned from sentences and their translations: the probability that a word becomes
// another one, independent of positions (IBM model 1; Brown et al. 1993), by five rounds of
// expectation and maximisation. Unknown words are left out.
class WordDictionary {
 public:
  // Texts with the same index are translations of each other.
  WordDictionary(std::span<const Tokens> sources, std::span<const Tokens> targets);

  // Returns the most probable translation; -1 for words without one.
  int64_t Translate(int64_t word) const;

 private:
  std::unordered_map<int64_t, std::unordered_map<int64_t, double>> probabilities_;
};

}  // namespace etude::suite
