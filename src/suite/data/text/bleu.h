#pragma once

#include <array>
#include <cstdint>

#include "src/suite/data/text/vocabulary.h"

namespace etude::suite {

// BLEU of a corpus (Papineni et al. 2002) in per cent: the geometric mean of the shares of
// sequences of one to four words that the reference also contains, times a penalty for brevity. The
// result equals that of sacrebleu for words that are already split, with one reference each and its
// smoothing "exp": each count without a match is replaced by half of the previous replacement.
class Bleu {
 public:
  void Add(const Tokens& said, const Tokens& reference);
  double score() const;

 private:
  static constexpr size_t kLongestRun = 4;
  std::array<int64_t, kLongestRun> matches_{};
  std::array<int64_t, kLongestRun> runs_{};
  int64_t said_ = 0;
  int64_t reference_ = 0;
};

}  // namespace etude::suite
