#pragma once

#include "src/suite/data/text/vocabulary.h"

namespace etude::suite {

// Returns ROUGE-L of a text (Lin 2004): the harmonic mean of precision and recall, which are the
// length of the longest common subsequence divided by the lengths of `said` and `reference`. 0 if
// either is empty.
double RougeL(const Tokens& said, const Tokens& reference);

}  // namespace etude::suite
