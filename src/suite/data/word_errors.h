#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace etude::suite {

// Symbols from one `space` to the next, or each symbol where there is none.
using Word = std::vector<int64_t>;
std::vector<Word> SplitWords(std::span<const int64_t> symbols, std::optional<int64_t> space);

// The fewest words that are to be put in, left out or replaced to make `said` of `heard`
// (Levenshtein's distance).
int64_t WordErrors(std::span<const Word> said, std::span<const Word> heard);

// What CTC reads from the most probable symbol of each step: repetitions are one symbol, and the
// blank, 0, is none (Graves 2006).
std::vector<int64_t> CollapseSteps(std::span<const int64_t> steps);

}  // namespace etude::suite
