#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace etude::suite {

// A sentence by the numbers of its words, without its start and end.
using Caption = std::vector<int64_t>;

// The words that are none. They come first in each vocabulary.
constexpr int64_t kStartWord = 0;
constexpr int64_t kEndWord = 1;
constexpr int64_t kUnknownWord = 2;
constexpr int64_t kFirstWord = 3;

// Sentences side by side, for a network that says each next word: N sentences, T words of the
// longest and its end, M words and ends of all. On the CPU.
struct CaptionBatch {
  at::Tensor before;  // int64 [N, T]: the start and the words; after a sentence, its end
  at::Tensor places;  // int64 [M]: which of the N × T have a word to be said
  at::Tensor next;    // int64 [M]: that word, or the end
};
CaptionBatch SideBySide(const std::vector<Caption>& captions);

// The perplexity of `test`, words and ends, by how often each is in `train`, where each of the
// vocabulary's `words` is counted once more, so that none is impossible.
double UnigramPerplexity(const std::vector<Caption>& train, const std::vector<Caption>& test,
                         int64_t words);

}  // namespace etude::suite
