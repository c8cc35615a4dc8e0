#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude::suite {

// Shown advertisements: numbers and categories, and whether someone clicked.
struct Impressions {
  at::Tensor numbers;     // float [N, numbers]
  at::Tensor categories;  // int64 [N, tables]
  at::Tensor labels;      // float [N], 0 or 1
};

struct Clicks {
  Impressions learned;
  Impressions held_out;
  std::vector<int64_t> rows;  // categories of each table
  // Click probabilities of the test samples, if they were generated: [N]; otherwise undefined.
  at::Tensor probabilities;
};

// Generates clicks from a fixed law, the same for each call: 8 tables whose categories follow
// Zipf's law, 4 normal numbers, and a logit with a term for each and with products of pairs of
// categories (docs/suite/advertising.md). Returns 100,000 training and 10,000 test samples.
Clicks GenerateClicks();

// Reads Criteo's Kaggle set as distributed, train.txt: lines of a label, 13 whole numbers and 26
// categories, separated by tabs, empty if missing. The last seventh (the last of seven days) is the
// test set. Numbers x become log(x + 1), and negative and missing ones 0. Each table has the
// training categories in their order, with row 0 for others, and at most `most_rows` rows, by the
// remainder. Returns kBadInput for other lines.
Result<Clicks> ReadCriteo(const std::string& path, int64_t most_rows, const RunContext& context);

// Reads the customers of the CoIL Challenge 2000 as distributed, ticdata2000.txt: lines of 86 whole
// numbers between tabs, the last of which tells whether a customer has a caravan policy (1). Every
// fifth line is held out. The customer's type (first field, 1 to 41) and main type (fifth field, 1
// to 10) are tables of categories. The other 83 are scaled to mean 0 and variance 1 of the training
// lines, and 0 where they are all the same. Returns kBadInput for other lines.
Result<Clicks> ReadCaravan(const std::string& path, const RunContext& context);

}  // namespace etude::suite
