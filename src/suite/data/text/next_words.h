#pragma once

#include <cstdint>
#include <unordered_map>

namespace etude::suite {

// How often each word occurs behind each other one: what can be said of a word from its left
// neighbour alone. Of equally frequent words the smallest number counts.
class NextWords {
 public:
  void Add(int64_t before, int64_t word);

  // The most frequent word behind `before`; behind words that were never before one, the most
  // frequent word. -1 if there are no words.
  int64_t Behind(int64_t before) const;
  int64_t MostFrequent() const;

 private:
  using Counts = std::unordered_map<int64_t, int64_t>;
  static int64_t Largest(const Counts& counts);

  Counts words_;
  std::unordered_map<int64_t, Counts> behind_;
};

}  // namespace etude::suite
