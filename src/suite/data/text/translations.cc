#include "src/suite/data/text/translations.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/base/random_stream.h"

namespace etude::suite {
namespace {

constexpr size_t kLongestText = 100;  // words

constexpr uint64_t kGrammarSeed = 3;
constexpr size_t kMadeToLearn = 4'000;
constexpr size_t kMadeHeldOut = 300;

// Sentences as words, the same number on both sides.
struct WordPairs {
  std::vector<std::vector<std::string>> sources;
  std::vector<std::vector<std::string>> targets;
};

Result<std::vector<std::vector<std::string>>> ReadSide(const std::string& path,
                                                       const RunContext& context) {
  std::vector<std::vector<std::string>> side;
  ETUDE_RETURN_IF_ERROR(ForEachTextLine(path, context, [&](std::string_view line) -> Status {
    std::vector<std::string> words = SplitText(line);
    words.resize(std::min(words.size(), kLongestText));
    side.push_back(std::move(words));
    return {};
  }));
  return side;
}

Result<WordPairs> ReadSentencePairs(const std::string& stem, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(auto sources, ReadSide(stem + ".en", context));
  ETUDE_ASSIGN_OR_RETURN(auto targets, ReadSide(stem + ".de", context));
  if (sources.size() != targets.size()) {
    return BadInput(fmt::format("{}.de: found {} lines, expected {}, as {}.en has", stem,
                                targets.size(), sources.size(), stem));
  }
  WordPairs pairs;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].empty() || targets[i].empty()) continue;
    pairs.sources.push_back(std::move(sources[i]));
    pairs.targets.push_back(std::move(targets[i]));
  }
  if (pairs.sources.empty()) {
    return BadInput(fmt::format("{}.en: no sentences, expected one a line", stem));
  }
  return pairs;
}

Translations Numbered(std::string name, const WordPairs& train, const WordPairs& test,
                      const Vocabulary::Size& size) {
  WordCounts counts;
  for (const auto& words : train.sources) counts.Add(words);
  for (const auto& words : train.targets) counts.Add(words);
  Translations made{.name = std::move(name), .vocabulary = Vocabulary(counts, size)};
  const auto number = [&](const WordPairs& from, TextPairs& to) {
    for (const auto& words : from.sources) to.sources.push_back(made.vocabulary.NumbersOf(words));
    for (const auto& words : from.targets) to.targets.push_back(made.vocabulary.NumbersOf(words));
  };
  number(train, made.train);
  number(test, made.test);
  return made;
}

enum Gender : uint8_t { kMasculine, kFeminine, kNeuter };
struct Noun {
  std::string_view english;
  std::string_view german;
  Gender gender;
};
struct Meaning {
  std::string_view english;
  std::string_view german;
};
constexpr std::array kNouns = {Noun{"man", "mann", kMasculine},  Noun{"dog", "hund", kMasculine},
                               Noun{"tree", "baum", kMasculine}, Noun{"woman", "frau", kFeminine},
                               Noun{"cat", "katze", kFeminine},  Noun{"flower", "blume", kFeminine},
                               Noun{"child", "kind", kNeuter},   Noun{"horse", "pferd", kNeuter},
                               Noun{"house", "haus", kNeuter},   Noun{"book", "buch", kNeuter}};
constexpr std::array kAdjectives = {Meaning{"old", "alt"},  Meaning{"small", "klein"},
                                    Meaning{"big", "groß"}, Meaning{"good", "gut"},
                                    Meaning{"red", "rot"},  Meaning{"young", "jung"}};
constexpr std::array kVerbs = {Meaning{"sees", "sieht"},      Meaning{"finds", "findet"},
                               Meaning{"loves", "liebt"},     Meaning{"knows", "kennt"},
                               Meaning{"looks for", "sucht"}, Meaning{"paints", "malt"}};
constexpr std::array kOpenings = {
    Meaning{"i know that", "ich weiß , dass"}, Meaning{"she says that", "sie sagt , dass"},
    Meaning{"we believe that", "wir glauben , dass"}, Meaning{"he hopes that", "er hofft , dass"}};

// Endings by case (nominative, accusative) and gender.
using Endings = std::array<std::array<std::string_view, 3>, 2>;
constexpr Endings kDefinite = {{{"der", "die", "das"}, {"den", "die", "das"}}};
constexpr Endings kIndefinite = {{{"ein", "eine", "ein"}, {"einen", "eine", "ein"}}};
constexpr Endings kAfterDefinite = {{{"e", "e", "e"}, {"en", "e", "e"}}};
constexpr Endings kAfterIndefinite = {{{"er", "e", "es"}, {"en", "e", "es"}}};

template <typename Choices>
const auto& Choose(const Choices& choices, RandomStream& random) {
  return choices[random.Below(choices.size())];
}

// Appends a noun with an article and, half of the time, an adjective to both sentences.
void AddNoun(size_t grammatical_case, RandomStream& random, std::string& english,
             std::string& german) {
  const Noun& noun = Choose(kNouns, random);
  const bool definite = random.Below(2) == 0;
  english += definite ? " the" : " a";
  german += fmt::format(" {}", (definite ? kDefinite : kIndefinite)[grammatical_case][noun.gender]);
  if (random.Below(2) == 0) {
    const Meaning& adjective = Choose(kAdjectives, random);
    english += fmt::format(" {}", adjective.english);
    german +=
        fmt::format(" {}{}", adjective.german,
                    (definite ? kAfterDefinite : kAfterIndefinite)[grammatical_case][noun.gender]);
  }
  english += fmt::format(" {}", noun.english);
  german += fmt::format(" {}", noun.german);
}

}  // namespace

Result<Translations> ReadTranslations(const std::string& folder, const Vocabulary::Size& size,
                                      const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const WordPairs train, ReadSentencePairs(folder + "/train", context));
  ETUDE_ASSIGN_OR_RETURN(const WordPairs test, ReadSentencePairs(folder + "/test", context));
  return Numbered(folder.substr(folder.rfind('/') + 1), train, test, size);
}

Translations MakeTranslations() {
  RandomStream random(kGrammarSeed);
  WordPairs train;
  WordPairs test;
  std::set<std::string> known;
  while (known.size() < kMadeToLearn + kMadeHeldOut) {
    const Meaning& opening = Choose(kOpenings, random);
    const Meaning& verb = Choose(kVerbs, random);
    std::string english(opening.english);
    std::string german(opening.german);
    AddNoun(0, random, english, german);
    english += fmt::format(" {}", verb.english);
    AddNoun(1, random, english, german);
    german += fmt::format(" {}", verb.german);
    if (!known.insert(english).second) continue;
    WordPairs& part = known.size() <= kMadeHeldOut ? test : train;
    part.sources.push_back(SplitText(english));
    part.targets.push_back(SplitText(german));
  }
  return Numbered("generated", train, test, {.most = 1'000});
}

}  // namespace etude::suite
