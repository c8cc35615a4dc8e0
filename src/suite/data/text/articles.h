#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/data/text/vocabulary.h"

namespace etude::suite {

// Texts and their summaries, none empty.
struct SummarizedTexts {
  std::vector<Tokens> texts;
  std::vector<Tokens> summaries;  // as many
};

// Training and held-out texts. Words outside of the vocabulary have numbers from `words`, so that
// models can copy them.
struct Articles {
  std::string name;   // of the data set
  int64_t words = 0;  // numbers of the vocabulary
  SummarizedTexts train;
  SummarizedTexts test;
};

struct ArticleFiles {
  std::string folder;
  std::array<const char*, 2> train;  // file names: texts, one per line, and their summaries
  std::array<const char*, 2> test;
  int64_t most_words = 0;      // max numbers of the vocabulary, the reserved ones included
  size_t longest_text = 0;     // max words of a text; the rest is cut
  size_t longest_summary = 0;  // max words of a training summary; held-out ones are not cut
};

// Reads texts and summaries; pairs with an empty one are skipped. The vocabulary consists of the
// most frequent words of the training files. kBadInput if the numbers of lines differ or no pair is
// left.
Result<Articles> ReadArticles(const ArticleFiles& files, const RunContext& context);

}  // namespace etude::suite
