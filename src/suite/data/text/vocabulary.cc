#include "src/suite/data/text/vocabulary.h"

#include <algorithm>
#include <utility>

#include "src/base/text/ascii.h"
#include "src/formats/io/file_text.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

bool IsWordByte(char c) { return IsLetter(c) || IsDigit(c) || static_cast<unsigned char>(c) > 127; }
bool IsJoint(char c) { return std::string_view("-+.'_").find(c) != std::string_view::npos; }

// Converts to lower case. In UTF-8, a capital letter of Latin-1 has 0x80 to 0x9E after 0xC3, except
// × (0x97).
std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (size_t i = 0; i < lower.size(); ++i) {
    lower[i] = Lower(lower[i]);
    const auto byte = static_cast<unsigned char>(lower[i]);
    const bool latin = i > 0 && static_cast<unsigned char>(lower[i - 1]) == 0xC3;
    if (latin && byte >= 0x80 && byte <= 0x9E && byte != 0x97) {
      lower[i] = static_cast<char>(byte + 0x20);
    }
  }
  return lower;
}

}  // namespace

std::vector<std::string> SplitText(std::string_view text, bool joints) {
  const std::string lower = LowerCase(text);
  std::vector<std::string> words;
  for (size_t i = 0; i < lower.size();) {
    size_t end = i + 1;
    if (IsWordByte(lower[i])) {
      while (end < lower.size()) {
        const bool joins =
            joints && IsJoint(lower[end]) && end + 1 < lower.size() && IsWordByte(lower[end + 1]);
        if (!joins && !IsWordByte(lower[end])) break;
        ++end;
      }
    }
    if (lower[i] > ' ' || IsWordByte(lower[i])) {
      if (lower[i] != '\x7f') words.push_back(lower.substr(i, end - i));
    }
    i = end;
  }
  return words;
}

Status ForEachTextLine(const std::string& path, const RunContext& context,
                       const std::function<Status(std::string_view line)>& take) {
  ETUDE_ASSIGN_OR_RETURN(const FileText file, FileText::Open(path, context.limits));
  std::string_view rest = file.text();
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    ETUDE_RETURN_IF_ERROR(take(line));
  }
  return {};
}

void WordCounts::Count(std::span<const std::string> words, int64_t times) {
  for (const std::string& word : words) {
    const auto [found, is_new] = words_.try_emplace(word);
    if (is_new) found->second.place = std::ssize(words_);
    found->second.count += times;
  }
}

Vocabulary::Vocabulary(const WordCounts& counts, const Size& size) : first_(size.first) {
  std::vector<std::pair<std::string_view, WordCounts::Occurrences>> kept;
  for (const auto& [word, count] : counts.words_) {
    if (count.count >= size.least_count) kept.emplace_back(word, count);
  }
  std::ranges::sort(kept, [](const auto& a, const auto& b) {
    if (a.second.count != b.second.count) return a.second.count > b.second.count;
    return a.second.place < b.second.place;
  });
  kept.resize(std::min(kept.size(), static_cast<size_t>(std::max<int64_t>(size.most - first_, 0))));
  for (const auto& entry : kept) {
    numbers_.emplace(entry.first, first_ + std::ssize(words_));
    words_.emplace_back(entry.first);
  }
}

int64_t Vocabulary::NumberOf(const std::string& word) const {
  const auto found = numbers_.find(word);
  return found == numbers_.end() ? kUnknownToken : found->second;
}

Tokens Vocabulary::NumbersOf(std::span<const std::string> words) const {
  Tokens numbers;
  for (const std::string& word : words) numbers.push_back(NumberOf(word));
  return numbers;
}

at::Tensor PaddedRows(std::span<const Tokens> texts, int64_t padding) {
  size_t longest = 0;
  for (const Tokens& text : texts) longest = std::max(longest, text.size());
  std::vector<int64_t> values;
  values.reserve(texts.size() * longest);
  for (size_t row = 0; row < texts.size(); ++row) {
    values.insert(values.end(), texts[row].begin(), texts[row].end());
    values.resize((row + 1) * longest, padding);
  }
  return FromValues(values, {std::ssize(texts), static_cast<int64_t>(longest)});
}

}  // namespace etude::suite
