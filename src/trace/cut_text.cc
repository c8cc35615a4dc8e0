#include "src/trace/cut_text.h"

#include "src/base/ascii.h"
#include "src/base/quantity.h"

namespace etude {

CutText CutNumbers(std::string_view text) {
  CutText cut{.form = std::string(1, CutText::kWithNumbers), .numbers = {}};
  if (text.find(CutText::kNumberInText) != std::string_view::npos) {
    return {.form = CutText::kAsItIs + std::string(text), .numbers = {}};
  }
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && IsDigit(text[end])) ++end;
    if (end == at) {
      cut.form += text[at++];
      continue;
    }
    const std::string_view digits = text.substr(at, end - at);
    const auto number = ParseWhole(digits);
    // Written again it must read the same.
    if (number && std::to_string(*number) == digits) {
      cut.form += CutText::kNumberInText;
      cut.numbers.push_back(*number);
    } else {
      cut.form += digits;
    }
    at = end;
  }
  return cut;
}

}  // namespace etude
