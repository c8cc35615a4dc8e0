#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace etude {

// Returns the words of a line, which blanks and tabs separate; they point into it.
inline std::vector<std::string_view> WordsOf(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  std::vector<std::string_view> words;
  for (size_t begin = line.find_first_not_of(kBlank); begin != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(kBlank, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(kBlank, end);
  }
  return words;
}

}  // namespace etude
