#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace etude::suite {

// Splits symbols into words at `space`, or into single symbols without it.
using Word = std::vector<int64_t>;
std::vector<Word> SplitWords(std::span<const int64_t> symbols, std::optional<int64_t> space);

// Returns the minimum number of words to insert, delete or replace to turn `heard` into `said`
// (Levenshtein distance).
int64_t WordErrors(std::span<const Word> said, std::span<const Word> heard);

// Decodes the most probable symbol of each CTC step: repetitions are merged, blanks (0) are removed
// (Graves 2006).
std::vector<int64_t> CollapseSteps(std::span<const int64_t> steps);

}  // namespace etude::suite
