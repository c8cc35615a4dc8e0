#pragma once

#include <algorithm>
#include <string_view>

namespace etude {

// Classes of ASCII characters, independent of the locale.
constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
// Returns true for characters of identifiers: letters, digits and '_'.
constexpr bool IsWord(char c) { return IsLetter(c) || IsDigit(c) || c == '_'; }
// Returns true for white space of JSON and Python literals.
constexpr bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

constexpr char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Returns `text` without leading and trailing blanks.
constexpr std::string_view Trimmed(std::string_view text, bool (*is_blank)(char) = IsBlank) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}
// Returns true if `text` ends with `ending`, ignoring case; `ending` must be lower-case.
constexpr bool EndsWithNoCase(std::string_view text, std::string_view ending) {
  const auto same = [](char a, char b) { return Lower(a) == b; };
  return text.size() >= ending.size() &&
         std::ranges::equal(text.substr(text.size() - ending.size()), ending, same);
}

}  // namespace etude
