#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude::suite {

// A text as word numbers of a vocabulary.
using Tokens = std::vector<int64_t>;

// Reserved numbers, the same in each vocabulary.
constexpr int64_t kPaddingToken = 0;  // fills up the shorter texts of a batch
constexpr int64_t kStartToken = 1;
constexpr int64_t kEndToken = 2;
constexpr int64_t kUnknownToken = 3;
constexpr int64_t kFirstToken = 4;

// Splits a text into words and signs in lower case (ASCII and Latin-1 letters). A word consists of
// letters, digits and bytes above ASCII. One of "-+.'_" between two of these joins them. With
// `joints` false each sign is separate.
std::vector<std::string> SplitText(std::string_view text, bool joints = true);

// Calls take(line) for each line of a file, without its end. Stops at an error of `take`.
Status ForEachTextLine(const std::string& path, const RunContext& context,
                       const std::function<Status(std::string_view line)>& take);

// Counts of words.
class WordCounts {
 public:
  void Add(std::span<const std::string> words) { Count(words, 1); }
  // Adds words without an occurrence.
  void Mention(std::span<const std::string> words) { Count(words, 0); }

 private:
  friend class Vocabulary;
  void Count(std::span<const std::string> words, int64_t times);
  struct Occurrences {
    int64_t count = 0;
    int64_t place = 0;  // position of the first occurrence among those of all words
  };
  std::unordered_map<std::string, Occurrences> words_;
};

// The most frequent words, numbered from `first` by frequency. Ties are in order of first
// occurrence. Immutable.
class Vocabulary {
 public:
  struct Size {
    int64_t most = 0;         // maximum of numbers, including the reserved ones
    int64_t least_count = 1;  // minimum of occurrences of a word
    int64_t first = kFirstToken;
  };
  Vocabulary() = default;
  Vocabulary(const WordCounts& counts, const Size& size);

  // Returns the number of numbers, including the reserved ones.
  int64_t size() const { return first_ + std::ssize(words_); }
  // Returns the number of a word; kUnknownToken for other words.
  int64_t NumberOf(const std::string& word) const;
  Tokens NumbersOf(std::span<const std::string> words) const;
  // Returns the word of a number from `first` on.
  const std::string& WordOf(int64_t number) const {
    return words_[static_cast<size_t>(number - first_)];
  }

 private:
  int64_t first_ = kFirstToken;
  std::vector<std::string> words_;
  std::unordered_map<std::string, int64_t> numbers_;
};

// Returns texts as rows, padded with `padding`: int64 [N, length of the longest].
at::Tensor PaddedRows(std::span<const Tokens> texts, int64_t padding = kPaddingToken);

}  // namespace etude::suite
