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

// A text by the numbers of its words in a vocabulary.
using Tokens = std::vector<int64_t>;

// Numbers that no word has, the same in each vocabulary.
constexpr int64_t kPaddingToken = 0;  // fills up the shorter texts of a batch
constexpr int64_t kStartToken = 1;
constexpr int64_t kEndToken = 2;
constexpr int64_t kUnknownToken = 3;
constexpr int64_t kFirstToken = 4;

// The words and signs of a text in lower case (ASCII and Latin-1 letters). A word consists of
// letters, digits and bytes above ASCII; one of "-+.'_" between two of these joins them.
// With `joints` false each sign is one for itself.
std::vector<std::string> SplitText(std::string_view text, bool joints = true);

// Calls take(line) for each line of a file, without its end. What take returns ends the reading if
// it is an error.
Status ForEachTextLine(const std::string& path, const RunContext& context,
                       const std::function<Status(std::string_view line)>& take);

// How often words occur.
class WordCounts {
 public:
  void Add(std::span<const std::string> words);

 private:
  friend class Vocabulary;
  struct Count {
    int64_t count = 0;
    int64_t place = 0;  // of the first occurrence among those of all words
  };
  std::unordered_map<std::string, Count> words_;
};

// The most frequent words, numbered from `first` by frequency; of equal ones first the one that
// occurred first. Immutable.
class Vocabulary {
 public:
  struct Size {
    int64_t most = 0;         // numbers, the reserved ones included
    int64_t least_count = 1;  // occurrences of a word
    int64_t first = kFirstToken;
  };
  Vocabulary() = default;
  Vocabulary(const WordCounts& counts, const Size& size);

  // Numbers, the reserved ones included.
  int64_t size() const { return first_ + std::ssize(words_); }
  // kUnknownToken for other words.
  int64_t NumberOf(const std::string& word) const;
  Tokens NumbersOf(std::span<const std::string> words) const;
  // Of a number from `first`.
  const std::string& WordOf(int64_t number) const {
    return words_[static_cast<size_t>(number - first_)];
  }

 private:
  int64_t first_ = kFirstToken;
  std::vector<std::string> words_;
  std::unordered_map<std::string, int64_t> numbers_;
};

// Texts side by side, filled up with `padding`: int64 [N, length of the longest].
at::Tensor PaddedRows(std::span<const Tokens> texts, int64_t padding = kPaddingToken);

}  // namespace etude::suite
