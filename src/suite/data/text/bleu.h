#pragma once

#include <array>
#include <cstdint>

#include "src/suite/data/text/vocabulary.h"

namespace etude::suite {

// BLEU of a corpus (Papineni et al. 2002) in per cent: the geometric mean of the shares of runs of
// one to four words that the reference has too, by a penalty for brevity. As sacrebleu computes it
// from words already split: one reference each, and of runs of which none matches, each next
// number counts half as much as before (its smoothing "exp").
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
