#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace etude {

// A text without its numbers, and the numbers. The first byte of `form` shows whether kNumberInText
// marks a number in it.
struct CutText {
  static constexpr char kNumberInText = '\0';
  static constexpr char kWithNumbers = 'n';
  static constexpr char kAsItIs = 'a';

  std::string form;
  std::vector<int64_t> numbers;
};

// Cuts out numbers that read back as the same text: "07" stays, and a text that contains
// kNumberInText is left unchanged.
CutText CutNumbers(std::string_view text);

}  // namespace etude
