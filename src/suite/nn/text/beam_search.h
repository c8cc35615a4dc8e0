#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/data/text/vocabulary.h"

namespace etude::suite {

struct BeamSearch {
  int64_t texts = 0;    // that are searched for at once
  int64_t beams = 4;    // of each
  int64_t longest = 0;  // words of a text
};

// Searches for the texts of the largest probability, of which the logarithm is divided by
// ((5 + words) / 6)^0.6 (Wu et al., 1609.08144). next(before) says how probable each word is behind
// `before`, int64 [texts × beams, t], of which the beams of a text are neighbours and each text
// begins with kStartToken: logarithms [texts × beams, words]. Texts are without start and end; they
// have no unknown words.
std::vector<Tokens> Search(const BeamSearch& search, const at::Device& device,
                           const std::function<at::Tensor(const at::Tensor& before)>& next);

}  // namespace etude::suite
