#include "src/formats/job/rank_name.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "src/base/text/ascii.h"
#include "src/base/text/quantity.h"
#include "src/formats/io/byte_source.h"

namespace etude {
namespace {

// Words directly before the rank of a process.
constexpr auto kRankWords = std::to_array<std::string_view>({"rank", "worker"});
// Prefixes that give another meaning to "rank": a rank in a node, or along one axis of the job.
constexpr auto kOtherRanks = std::to_array<std::string_view>(
    {"local", "node", "machine", "group", "tp", "pp", "dp", "ep", "cp", "sp", "mp", "dcp", "etp",
     "tensor", "pipeline", "data", "expert", "context"});
// Kinds of traces, as in names of a capture's files and of Chakra's tools: host.3.json.
constexpr auto kTraceWords =
    std::to_array<std::string_view>({"host", "device", "linked", "capture", "chakra", "job"});
// Words for counters other than ranks.
constexpr auto kCountedWords = std::to_array<std::string_view>(
    {"step", "steps", "iter", "iters", "iteration", "iterations", "epoch", "epochs", "batch",
     "cycle", "trial", "repeat", "attempt", "window", "loss", "version"});

constexpr size_t kMostDigits = 6;   // of a rank
constexpr size_t kTimeDigits = 10;  // min digits of a time: seconds since 1970

template <size_t N>
bool IsOneOf(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

constexpr bool IsSeparator(char c) { return c == '.' || c == '_' || c == '-'; }

// Returns the digits of `text` from `begin` on.
std::string_view DigitsAt(std::string_view text, size_t begin) {
  size_t end = begin;
  while (end < text.size() && IsDigit(text[end])) ++end;
  return text.substr(begin, end - begin);
}

// Returns `name` without the endings of traces and compressions.
std::string_view Stem(std::string_view name) {
  name = WithoutCompression(name);
  for (const std::string_view ending : {".json", ".etude", ".et", ".trace", ".pt"}) {
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  return name;
}

// Returns true if `text` ends in a part of a version, such as "et_1.0" and "v2": a number that
// stands alone. "resnet50" and "llama7b" are names.
bool EndsInVersion(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0 && IsDigit(text[begin - 1])) --begin;
  if (begin == text.size()) return false;
  const bool is_word = begin >= 1 && IsLetter(text[begin - 1]);
  const bool is_v = begin >= 1 && Lower(text[begin - 1]) == 'v';
  return !is_word || is_v;
}

// Returns the word of letters that ends at `end`.
std::string_view WordBefore(std::string_view text, size_t end) {
  size_t begin = end;
  while (begin > 0 && IsLetter(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

struct Found {
  int64_t number = 0;
  size_t begin = 0;  // first digit
  size_t size = 0;
};

// Finds numbers directly after `word`, or after a separator behind it, if `word` is separate or
// capitalized: in "kineto_rank-3", "VllmWorker0", not in "frank3".
std::vector<Found> NumbersAfter(std::string_view word, std::string_view stem,
                                std::string_view lower, bool of_job) {
  std::vector<Found> found;
  for (size_t at = lower.find(word); at != std::string_view::npos; at = lower.find(word, at + 1)) {
    const bool is_inside = at > 0 && IsLetter(stem[at - 1]) && stem[at] == lower[at];
    size_t before = at;
    if (before > 0 && IsSeparator(stem[before - 1])) --before;
    const bool is_of_job = !IsOneOf(kOtherRanks, WordBefore(lower, before));
    size_t begin = at + word.size();
    if (begin < stem.size() && IsSeparator(stem[begin])) ++begin;
    const std::string_view digits = DigitsAt(stem, begin);
    const auto number = ParseWhole(digits);
    // "tprank3": the prefix is joined to the word.
    const bool is_glued = is_inside && IsOneOf(kOtherRanks, WordBefore(lower, at));
    if (!number || (is_inside && !is_glued)) continue;
    if (is_of_job == of_job) found.push_back({*number, begin, digits.size()});
  }
  return found;
}

// Returns the number if all are equal.
std::optional<Found> OnlyOne(const std::vector<Found>& found) {
  const auto differs = [&](const Found& one) { return one.number != found.front().number; };
  if (found.empty() || std::ranges::any_of(found, differs)) return std::nullopt;
  return found.front();
}

// Returns a number at the end, after a separator, except for versions such as et_1.0.3.
std::optional<Found> NumberAtEnd(std::string_view stem, bool is_chakra) {
  size_t begin = stem.size();
  while (begin > 0 && IsDigit(stem[begin - 1])) --begin;
  if (begin == stem.size() || begin == 0 || !IsSeparator(stem[begin - 1])) return std::nullopt;
  const size_t significant = std::min(stem.find_first_not_of('0', begin), stem.size());
  if (!is_chakra && stem.size() - significant > kMostDigits) return std::nullopt;
  if (stem[begin - 1] == '.' && !is_chakra && EndsInVersion(stem.substr(0, begin - 1))) {
    return std::nullopt;
  }
  const auto number = ParseWhole(stem.substr(begin));
  if (!number) return std::nullopt;
  return Found{*number, begin, stem.size() - begin};
}

// Removes the last time from `series` and returns it.
std::optional<int64_t> TakeTime(std::string& series) {
  std::optional<int64_t> time;
  for (size_t at = 0; at < series.size();) {
    const size_t size = DigitsAt(series, at).size();
    if (size < kTimeDigits) {
      at += std::max<size_t>(size, 1);
      continue;
    }
    time = ParseWhole(std::string_view(series).substr(at, size));
    series.replace(at, size, "#");
    ++at;
  }
  return time;
}

}  // namespace

std::string_view WithoutCompression(std::string_view name) {
  for (const auto& [ending, compression] : kCompressionEndings) {
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  return name;
}

RankName ReadRankName(std::string_view file_name) {
  RankName name;
  const std::string_view stem = Stem(file_name);
  std::string lower(stem);
  std::ranges::transform(lower, lower.begin(), Lower);
  std::optional<Found> taken;
  for (const std::string_view word : kRankWords) {
    const std::vector<Found> found = NumbersAfter(word, stem, lower, /*of_job=*/true);
    if (found.empty()) continue;
    taken = OnlyOne(found);
    if (taken) name.rank = taken->number;
    break;
  }
  if (!name.rank) {
    const bool is_chakra = WithoutCompression(file_name).ends_with(".et");
    const auto last = NumberAtEnd(stem, is_chakra);
    const std::string_view word = last ? WordBefore(lower, last->begin - 1) : std::string_view();
    const bool is_trace = IsOneOf(kTraceWords, word);
    // PREFIX.RANK.et, with any PREFIX, in all tools.
    const bool is_rank = is_trace || (is_chakra && last && stem[last->begin - 1] != '-');
    if (last && is_rank) {
      name.rank = last->number;
    } else if (last && !IsOneOf(kCountedWords, word)) {
      name.number = last->number;
    }
    if (last && (name.rank || name.number)) taken = last;
    if (!taken) taken = OnlyOne(NumbersAfter("rank", stem, lower, /*of_job=*/false));
    if (taken && !name.rank) name.number = taken->number;
  }
  name.series = WithoutCompression(file_name);
  // The stem is a prefix of the name.
  if (taken) name.series.replace(taken->begin, taken->size, "#");
  name.time = TakeTime(name.series);
  return name;
}

std::optional<int64_t> RankFromName(std::string_view file_name) {
  return ReadRankName(file_name).rank;
}

bool CountFromZero(std::vector<int64_t> numbers) {
  std::ranges::sort(numbers);
  if (numbers.size() < 2 || numbers.front() != 0) return false;
  if (std::ranges::adjacent_find(numbers) != numbers.end()) return false;
  return std::cmp_less_equal(numbers.back(), 2 * numbers.size() - 1);
}

std::vector<std::optional<int64_t>> RanksFromNames(std::span<const RankName> names) {
  std::map<std::string_view, std::vector<int64_t>> numbers;  // by series
  for (const RankName& name : names) {
    if (!name.rank && name.number) numbers[name.series].push_back(*name.number);
  }
  std::vector<std::optional<int64_t>> ranks;
  for (const RankName& name : names) {
    ranks.push_back(name.rank);
    if (name.rank || !name.number || !CountFromZero(numbers[name.series])) continue;
    ranks.back() = name.number;
  }
  return ranks;
}

bool ComesBefore(std::string_view a, std::string_view b) {
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    std::string_view of_a = DigitsAt(a, i);
    std::string_view of_b = DigitsAt(b, j);
    if (of_a.empty() || of_b.empty()) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
      continue;
    }
    i += of_a.size();
    j += of_b.size();
    of_a.remove_prefix(std::min(of_a.find_first_not_of('0'), of_a.size()));
    of_b.remove_prefix(std::min(of_b.find_first_not_of('0'), of_b.size()));
    if (of_a.size() != of_b.size()) return of_a.size() < of_b.size();
    if (of_a != of_b) return of_a < of_b;
  }
  if (i < a.size() || j < b.size()) return j < b.size();
  return a < b;
}

}  // namespace etude
