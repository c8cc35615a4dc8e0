#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude::suite {

// Advertisements that were shown: numbers and categories, and whether someone clicked.
struct Impressions {
  at::Tensor numbers;     // float [N, numbers]
  at::Tensor categories;  // int64 [N, tables]
  at::Tensor labels;      // float [N], 0 or 1
};

struct Clicks {
  Impressions learned;
  Impressions held_out;
  std::vector<int64_t> rows;  // categories of each table
  // Probability of a click of those held out, where they were generated: [N]; else undefined.
  at::Tensor probabilities;
};

// Clicks of a known law, the same for each call: 8 tables whose categories follow Zipf's law, 4
// normal numbers, and a logit of a term for each and of products of pairs of categories, as
// docs/suite/advertising.md has it. 100,000 to learn from, 10,000 held out.
Clicks GenerateClicks();

// Criteo's Kaggle set as it is distributed, train.txt: lines of a label, 13 whole numbers and 26
// categories between tabs, empty where missing. The last seventh (the last of seven days) is held
// out. Numbers x become log(x + 1), those below 0 and missing ones 0. Each table has the categories
// that are learned from in their order, with row 0 for others; at most `most_rows` rows, by the
// remainder. kBadInput for other lines.
Result<Clicks> ReadCriteo(const std::string& path, int64_t most_rows, const RunContext& context);

}  // namespace etude::suite
