#pragma once

#include <cstdint>
#include <string>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/data/text/vocabulary.h"

namespace etude::suite {

// Numbers of running texts that are not words.
constexpr int64_t kLineEnd = 0;
constexpr int64_t kUnknownWordInLine = 1;

// Running texts for predicting each next word: the words of all lines in their order, with kLineEnd
// after each line.
struct WordStreams {
  std::string name;   // of the data set
  int64_t words = 0;  // numbers of the vocabulary, the two above included
  Tokens train;
  Tokens valid;
  Tokens test;
};

// Reads `folder`/ptb.train.txt, ptb.valid.txt and ptb.test.txt: a sentence per line, words
// separated by blanks, "<unk>" for unknown words, as the Penn Treebank is distributed for language
// models (Mikolov et al. 2010). The vocabulary is that of the training file. kBadInput for a file
// without words, or with more different words than `most`.
Result<WordStreams> ReadPtb(const std::string& folder, int64_t most, const RunContext& context);

// Reads the synopses of Debian packages, `folder`/train.title.txt and test.title.txt: every `every`
// line of the former, with a vocabulary of its `most` - 2 most frequent words. The latter's lines
// are used for validation and for testing in turns of 100, because neighbours are often similar.
Result<WordStreams> ReadSynopses(const std::string& folder, int64_t most, int64_t every,
                                 const RunContext& context);

}  // namespace etude::suite
