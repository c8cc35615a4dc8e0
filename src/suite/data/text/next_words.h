#pragma once

#include <cstdint>
#include <unordered_map>

namespace etude::suite {

// Frequencies of each word after each other word: the information about a word in its left
// neighbour alone. If words are equally frequent, the smallest number counts.
class NextWords {
 public:
  void Add(int64_t before, int64_t word);

  // Returns the most frequent word after `before`. For words that were never followed by one,
  // returns the most frequent word, and -1 if there are no words.
  int64_t Behind(int64_t before) const;
  int64_t MostFrequent() const;

 private:
  using Counts = std::unordered_map<int64_t, int64_t>;
  static int64_t Largest(const Counts& counts);

  Counts words_;
  std::unordered_map<int64_t, Counts> behind_;
};

}  // namespace etude::suite
