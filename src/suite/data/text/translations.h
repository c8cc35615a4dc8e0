#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/data/text/vocabulary.h"

namespace etude::suite {

// Texts and their translations, by the numbers of one vocabulary.
struct TextPairs {
  std::vector<Tokens> sources;
  std::vector<Tokens> targets;  // as many
};

struct Translations {
  std::string name;  // of the data set
  Vocabulary vocabulary;
  TextPairs train;
  TextPairs test;
};

// Reads `folder`/train.en, train.de, test.en and test.de: a sentence a line, as WMT and Multi30k
// distribute them. The vocabulary is that of both languages' training sentences; sentences are cut
// after 100 words, and pairs with an empty one are left out. kBadInput if files do not have as many
// lines or nothing is left.
Result<Translations> ReadTranslations(const std::string& folder, const Vocabulary::Size& size,
                                      const RunContext& context);

// Sentences of a small grammar, the same in all runs: "i know that the old man sees a house" and
// "ich weiß , dass der alte mann ein haus sieht". Articles and adjectives agree with nouns, and
// verbs come last. No sentence is both learned from and held out.
Translations MakeTranslations();

}  // namespace etude::suite
