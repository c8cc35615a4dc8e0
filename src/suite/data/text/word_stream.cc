#include "src/suite/data/text/word_stream.h"

#include <functional>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace etude::suite {
namespace {

constexpr std::string_view kUnknown = "<unk>";
constexpr int64_t kLinesInTurn = 100;

using Words = std::vector<std::string>;

Words SplitAtBlanks(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\v\f\r";
  Words words;
  while (true) {
    const size_t begin = line.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const size_t end = line.find_first_of(kBlanks);
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(words.back().size());
  }
}

// Calls take(words, number of the line) for each line that has words.
Status ForEachLine(const std::string& path, Words (*split)(std::string_view),
                   const RunContext& context,
                   const std::function<void(const Words&, int64_t)>& take) {
  int64_t number = 0;
  bool any = false;
  ETUDE_RETURN_IF_ERROR(ForEachTextLine(path, context, [&](std::string_view line) -> Status {
    const Words words = split(line);
    if (!words.empty()) take(words, number);
    any |= !words.empty();
    ++number;
    return {};
  }));
  if (any) return {};
  return BadInput(path + ": no words, expected a sentence a line");
}

// The vocabulary's reserved numbers begin with those for padding and starts, which running texts
// lack.
static_assert(kUnknownToken - kEndToken == kUnknownWordInLine - kLineEnd &&
              kFirstToken - kEndToken == kUnknownWordInLine + 1);
int64_t InLine(int64_t number) { return number - kEndToken; }

void Append(const Vocabulary& vocabulary, const Words& words, Tokens& stream) {
  for (const std::string& word : words) stream.push_back(InLine(vocabulary.NumberOf(word)));
  stream.push_back(kLineEnd);
}

}  // namespace

Result<WordStreams> ReadPtb(const std::string& folder, int64_t most, const RunContext& context) {
  WordStreams streams{.name = folder.substr(folder.rfind('/') + 1)};
  const std::string train = folder + "/ptb.train.txt";
  WordCounts counts;
  ETUDE_RETURN_IF_ERROR(
      ForEachLine(train, SplitAtBlanks, context, [&](const Words& words, int64_t) {
        for (const std::string& word : words) {
          if (word != kUnknown) counts.Add({&word, 1});
        }
      }));
  const Vocabulary vocabulary(counts, {.most = std::numeric_limits<int64_t>::max()});
  streams.words = InLine(vocabulary.size());
  if (streams.words > most) {
    return BadInput(
        fmt::format("{}: found {} different words, expected at most {}; the Penn Treebank for "
                    "language models has 10,000",
                    train, streams.words, most));
  }
  const std::pair<const char*, Tokens*> files[] = {
      {"train", &streams.train}, {"valid", &streams.valid}, {"test", &streams.test}};
  for (const auto& [part, stream] : files) {
    ETUDE_RETURN_IF_ERROR(
        ForEachLine(fmt::format("{}/ptb.{}.txt", folder, part), SplitAtBlanks, context,
                    [&](const Words& words, int64_t) { Append(vocabulary, words, *stream); }));
  }
  return streams;
}

Result<WordStreams> ReadSynopses(const std::string& folder, int64_t most, int64_t every,
                                 const RunContext& context) {
  WordStreams streams{.name = folder.substr(folder.rfind('/') + 1)};
  const auto split = [](std::string_view line) { return SplitText(line); };
  const std::string train = folder + "/train.title.txt";
  WordCounts counts;
  ETUDE_RETURN_IF_ERROR(ForEachLine(train, split, context, [&](const Words& words, int64_t number) {
    if (number % every == 0) counts.Add(words);
  }));
  const Vocabulary vocabulary(counts, {.most = most + kEndToken});
  streams.words = InLine(vocabulary.size());
  ETUDE_RETURN_IF_ERROR(ForEachLine(train, split, context, [&](const Words& words, int64_t number) {
    if (number % every == 0) Append(vocabulary, words, streams.train);
  }));
  ETUDE_RETURN_IF_ERROR(ForEachLine(
      folder + "/test.title.txt", split, context, [&](const Words& words, int64_t number) {
        const bool validates = number / kLinesInTurn % 2 == 0;
        Append(vocabulary, words, validates ? streams.valid : streams.test);
      }));
  return streams;
}

}  // namespace etude::suite
