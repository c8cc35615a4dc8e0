#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/data/text/vocabulary.h"

namespace etude::suite {

struct BeamSearch {
  int64_t texts = 0;    // searched at the same time
  int64_t beams = 4;    // per text
  int64_t longest = 0;  // maximum number of words in a text
};

// Searches for the texts with the largest probability, whose logarithm is divided by ((5 + words) /
// 6)^0.6 (Wu et al., 1609.08144). next(before) returns the log probability of each word after
// `before` as [texts × beams, words]. `before` is int64 [texts × beams, t], with the beams of a
// text next to each other, and begins with kStartToken. The results are texts without start, end
// and unknown words.
std::vector<Tokens> Search(const BeamSearch& search, const at::Device& device,
                           const std::function<at::Tensor(const at::Tensor& before)>& next);

}  // namespace etude::suite
