#include "src/suite/data/text/articles.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace etude::suite {
namespace {

// A file and the max number of words per line; the rest is cut.
struct Side {
  std::string path;
  size_t longest = 0;
};

Status ForEachLinesWords(const Side& side, const RunContext& context,
                         const std::function<void(std::vector<std::string> words)>& take) {
  return ForEachTextLine(side.path, context, [&](std::string_view line) -> Status {
    std::vector<std::string> words = SplitText(line);
    words.resize(std::min(words.size(), side.longest));
    take(std::move(words));
    return {};
  });
}

Result<std::vector<Tokens>> ReadNumbers(const Side& side, const Vocabulary& vocabulary,
                                        const RunContext& context) {
  std::vector<Tokens> lines;
  ETUDE_RETURN_IF_ERROR(
      ForEachLinesWords(side, context, [&](const std::vector<std::string>& words) {
        lines.push_back(vocabulary.NumbersOf(words));
      }));
  return lines;
}

Result<SummarizedTexts> ReadPairs(const std::array<Side, 2>& sides, const Vocabulary& vocabulary,
                                  const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(auto texts, ReadNumbers(sides[0], vocabulary, context));
  ETUDE_ASSIGN_OR_RETURN(auto summaries, ReadNumbers(sides[1], vocabulary, context));
  if (texts.size() != summaries.size()) {
    return BadInput(fmt::format("{}: found {} lines, expected {}, as {} has", sides[1].path,
                                summaries.size(), texts.size(), sides[0].path));
  }
  SummarizedTexts pairs;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty() || summaries[i].empty()) continue;
    pairs.texts.push_back(std::move(texts[i]));
    pairs.summaries.push_back(std::move(summaries[i]));
  }
  if (pairs.texts.empty()) {
    return BadInput(
        fmt::format("{}: no text that has a summary, expected one a line", sides[0].path));
  }
  return pairs;
}

}  // namespace

Result<Articles> ReadArticles(const ArticleFiles& files, const RunContext& context) {
  const size_t whole = std::numeric_limits<size_t>::max();
  const auto side = [&](const char* name, size_t longest) {
    return Side{.path = files.folder + "/" + name, .longest = longest};
  };
  const std::array train = {side(files.train[0], files.longest_text),
                            side(files.train[1], files.longest_summary)};
  const std::array test = {side(files.test[0], files.longest_text), side(files.test[1], whole)};
  WordCounts counts;
  for (const Side& one : train) {
    ETUDE_RETURN_IF_ERROR(ForEachLinesWords(
        one, context, [&](const std::vector<std::string>& words) { counts.Add(words); }));
  }
  for (const Side& one : test) {
    ETUDE_RETURN_IF_ERROR(ForEachLinesWords(
        one, context, [&](const std::vector<std::string>& words) { counts.Mention(words); }));
  }
  const Vocabulary learned(counts, {.most = files.most_words});
  const Vocabulary all(counts, {.most = std::numeric_limits<int64_t>::max(), .least_count = 0});
  Articles articles{.name = files.folder.substr(files.folder.rfind('/') + 1),
                    .words = learned.size()};
  ETUDE_ASSIGN_OR_RETURN(articles.train, ReadPairs(train, all, context));
  ETUDE_ASSIGN_OR_RETURN(articles.test, ReadPairs(test, all, context));
  return articles;
}

}  // namespace etude::suite
