#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/data/text/vocabulary.h"

namespace etude::suite {

// Special numbers in the texts of a language model.
struct LanguageMarks {
  int64_t padding = kPaddingToken;
  int64_t start = kStartToken;  // of a text: [CLS]
  int64_t end = kEndToken;      // of a sentence: [SEP]
  int64_t unknown = kUnknownToken;
  int64_t mask = kFirstToken;  // replaces a word to be predicted
};

// The sentences of a text, as word numbers.
using Document = std::vector<Tokens>;

// Training and test texts of a language model.
struct Documents {
  std::string name;   // of the data set
  int64_t words = 0;  // numbers of the vocabulary
  LanguageMarks marks;
  std::vector<Document> train;  // at least two sentences each, none empty
  std::vector<Document> test;
};

// Reads `folder`/train.txt and test.txt: a sentence per line, an empty line between documents.
// Documents with one sentence are left out. Returns kBadInput if nothing remains. The vocabulary
// consists of the most frequent words of train.txt, `most` numbers with the special ones. The first
// `sentences` of each document are read.
Result<Documents> ReadDocuments(const std::string& folder, int64_t most, int64_t sentences,
                                const RunContext& context);
// Reads the same files with the word pieces in `folder`/vocab.txt, one per line, including [PAD],
// [UNK], [CLS], [SEP] and [MASK].
Result<Documents> ReadDocumentsInPieces(const std::string& folder, const RunContext& context);

// Moves all training words to other places, also of other documents.
void ShuffleWords(Documents& documents, uint64_t seed);

}  // namespace etude::suite
