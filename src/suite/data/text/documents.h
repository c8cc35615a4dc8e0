#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/data/text/vocabulary.h"

namespace etude::suite {

// Numbers that stand for no word in the texts of a language model.
struct LanguageMarks {
  int64_t padding = kPaddingToken;
  int64_t start = kStartToken;  // of a text: [CLS]
  int64_t end = kEndToken;      // of a sentence: [SEP]
  int64_t unknown = kUnknownToken;
  int64_t mask = kFirstToken;  // in place of a word to be guessed
};

// A text of sentences, by the numbers of their words.
using Document = std::vector<Tokens>;

// Texts that a language model learns from, and others held out.
struct Documents {
  std::string name;   // of the data set
  int64_t words = 0;  // numbers of the vocabulary
  LanguageMarks marks;
  std::vector<Document> train;  // of at least two sentences, none empty
  std::vector<Document> test;
};

// Reads `folder`/train.txt and test.txt: a sentence a line, an empty line between documents.
// Documents of one sentence are left out; nothing left is kBadInput. The vocabulary consists of the
// most frequent words of train.txt, `most` numbers with the marks. Of each document the first
// `sentences` are read.
Result<Documents> ReadDocuments(const std::string& folder, int64_t most, int64_t sentences,
                                const RunContext& context);
// The same with the pieces of words in `folder`/vocab.txt, one a line, which has [PAD], [UNK],
// [CLS], [SEP] and [MASK].
Result<Documents> ReadDocumentsInPieces(const std::string& folder, const RunContext& context);

// Gives all words that are learned from to other places, also of other documents.
void ShuffleWords(Documents& documents, uint64_t seed);

}  // namespace etude::suite
