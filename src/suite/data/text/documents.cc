#include "src/suite/data/text/documents.h"

#include <array>
#include <functional>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/base/random_stream.h"
#include "src/base/text/ascii.h"
#include "src/suite/data/text/word_pieces.h"

namespace etude::suite {
namespace {

// Calls take(line, number in its document) for the sentences of a file, and take({}, 0) between
// documents and at the end.
Status ForEachSentence(const std::string& path, const RunContext& context,
                       const std::function<void(std::string_view, int64_t)>& take) {
  int64_t number = 0;
  ETUDE_RETURN_IF_ERROR(ForEachTextLine(path, context, [&](std::string_view line) -> Status {
    const bool blank = Trimmed(line).empty();
    if (blank) number = 0;
    take(blank ? std::string_view() : line, blank ? 0 : number++);
    return {};
  }));
  take({}, 0);
  return {};
}

// Settings for reading documents.
struct Reading {
  int64_t sentences = std::numeric_limits<int64_t>::max();  // per document
  std::function<Tokens(std::string_view sentence)> number;
};

Result<std::vector<Document>> ReadPartOf(const std::string& path, const RunContext& context,
                                         const Reading& reading) {
  std::vector<Document> documents;
  Document document;
  ETUDE_RETURN_IF_ERROR(ForEachSentence(path, context, [&](std::string_view line, int64_t number) {
    if (line.empty()) {
      if (document.size() > 1) documents.push_back(std::move(document));
      document.clear();
    } else if (number < reading.sentences) {
      Tokens sentence = reading.number(line);
      if (!sentence.empty()) document.push_back(std::move(sentence));
    }
  }));
  if (!documents.empty()) return documents;
  return BadInput(path +
                  ": no document of two sentences, expected a sentence a line and an empty "
                  "line between documents");
}

Result<Documents> ReadBoth(const std::string& folder, const RunContext& context,
                           const Reading& reading) {
  Documents documents{.name = folder.substr(folder.rfind('/') + 1)};
  ETUDE_ASSIGN_OR_RETURN(documents.train, ReadPartOf(folder + "/train.txt", context, reading));
  ETUDE_ASSIGN_OR_RETURN(documents.test, ReadPartOf(folder + "/test.txt", context, reading));
  return documents;
}

}  // namespace

Result<Documents> ReadDocuments(const std::string& folder, int64_t most, int64_t sentences,
                                const RunContext& context) {
  WordCounts counts;
  ETUDE_RETURN_IF_ERROR(
      ForEachSentence(folder + "/train.txt", context, [&](std::string_view line, int64_t number) {
        if (number < sentences) counts.Add(SplitText(line));
      }));
  const LanguageMarks marks;
  const Vocabulary vocabulary(counts, {.most = most, .first = marks.mask + 1});
  ETUDE_ASSIGN_OR_RETURN(
      Documents documents,
      ReadBoth(folder, context, {.sentences = sentences, .number = [&](std::string_view line) {
                                   return vocabulary.NumbersOf(SplitText(line));
                                 }}));
  documents.words = vocabulary.size();
  return documents;
}

Result<Documents> ReadDocumentsInPieces(const std::string& folder, const RunContext& context) {
  const std::string path = folder + "/vocab.txt";
  ETUDE_ASSIGN_OR_RETURN(const WordPieces pieces, WordPieces::Read(path, context));
  LanguageMarks marks;
  const std::array<std::pair<const char*, int64_t*>, 5> names = {{{"[PAD]", &marks.padding},
                                                                  {"[CLS]", &marks.start},
                                                                  {"[SEP]", &marks.end},
                                                                  {"[UNK]", &marks.unknown},
                                                                  {"[MASK]", &marks.mask}}};
  for (const auto& [name, number] : names) {
    const auto found = pieces.NumberOf(name);
    if (!found) return BadInput(fmt::format("{}: no line {}, expected one", path, name));
    *number = *found;
  }
  ETUDE_ASSIGN_OR_RETURN(Documents documents,
                         ReadBoth(folder, context, {.number = [&](std::string_view line) {
                                    return pieces.Split(line, marks.unknown);
                                  }}));
  documents.words = pieces.size();
  documents.marks = marks;
  return documents;
}

void ShuffleWords(Documents& documents, uint64_t seed) {
  Tokens words;
  for (const Document& document : documents.train) {
    for (const Tokens& sentence : document) {
      words.insert(words.end(), sentence.begin(), sentence.end());
    }
  }
  RandomStream random(seed);
  Shuffle(std::span(words), random);
  auto word = words.begin();
  for (Document& document : documents.train) {
    for (Tokens& sentence : document) {
      for (int64_t& number : sentence) number = *word++;
    }
  }
}

}  // namespace etude::suite
