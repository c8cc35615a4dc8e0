#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace etude {

// A text without its numbers, and these. The first byte of the form says whether kNumberInText in
// it stands for a number.
struct CutText {
  static constexpr char kNumberInText = '\0';
  static constexpr char kWithNumbers = 'n';
  static constexpr char kAsItIs = 'a';

  std::string form;
  std::vector<int64_t> numbers;
};

// Cuts out what reads the same when it is written again: "07" stays, and so does a text that has
// kNumberInText.
CutText CutNumbers(std::string_view text);

}  // namespace etude
