#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace etude::suite {

// Probabilities of each word after the one before it, smoothed by Witten and Bell (1991): a word
// with c occurrences that d different words followed has the weight c / (c + d) for its own
// successors, and the rest for the frequencies of all words, each counted once more.
class BigramModel {
 public:
  BigramModel(std::span<const int64_t> text, int64_t words);

  double Probability(int64_t before, int64_t word) const;
  // Returns the perplexity of a text of at least two words, from its second one on.
  double Perplexity(std::span<const int64_t> text) const;

 private:
  struct Successors {
    std::unordered_map<int64_t, int64_t> counts;
    int64_t all = 0;
  };
  double Frequency(int64_t word) const;

  std::vector<int64_t> counts_;  // by word
  int64_t all_ = 0;
  std::vector<Successors> successors_;  // by word
};

}  // namespace etude::suite
