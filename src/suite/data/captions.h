#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace etude::suite {

// A sentence as word numbers, without start and end.
using Caption = std::vector<int64_t>;

// Special words. They come first in each vocabulary.
constexpr int64_t kStartWord = 0;
constexpr int64_t kEndWord = 1;
constexpr int64_t kUnknownWord = 2;
constexpr int64_t kFirstWord = 3;

// A batch of sentences for predicting each next word: N sentences, T words in the longest one
// including its end, M words and ends in total. On the CPU.
struct CaptionBatch {
  at::Tensor before;  // int64 [N, T]: start and words; padded with the end
  at::Tensor places;  // int64 [M]: indices in N × T that have a next word
  at::Tensor next;    // int64 [M]: the next word, or the end
};
CaptionBatch SideBySide(const std::vector<Caption>& captions);

// Returns the perplexity of `test` (words and ends) under the word frequencies of `train`, with
// add-one smoothing over a vocabulary of `words`.
double UnigramPerplexity(const std::vector<Caption>& train, const std::vector<Caption>& test,
                         int64_t words);

}  // namespace etude::suite
