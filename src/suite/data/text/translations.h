#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/data/text/vocabulary.h"

namespace etude::suite {

// Texts and their translations, as numbers of one vocabulary.
struct TextPairs {
  std::vector<Tokens> sources;
  std::vector<Tokens> targets;  // the same number
};

struct Translations {
  std::string name;  // of the data set
  Vocabulary vocabulary;
  TextPairs train;
  TextPairs test;
};

// Reads `folder`/train.en, train.de, test.en and test.de: a sentence per line, as WMT and Multi30k
// distribute them. The vocabulary is that of both languages' training sentences. Sentences are cut
// after 100 words, and pairs with an empty one are left out. Returns kBadInput if files differ in
// their number of lines or nothing remains.
Result<Translations> ReadTranslations(const std::string& folder, const Vocabulary::Size& size,
                                      const RunContext& context);

// Makes sentences of a small grammar, the same in all runs: "i know that the old man sees a house"
// and "ich weiß , dass der alte mann ein haus sieht". Articles and adjectives agree with nouns, and
// verbs come last. No sentence is in both the training and the test set.
Translations MakeTranslations();

}  // namespace etude::suite
