#include "src/trace/words/cut_text.h"

#include "src/base/text/digit_runs.h"
#include "src/base/text/quantity.h"

namespace etude {

CutText CutNumbers(std::string_view text) {
  if (text.find(CutText::kNumberInText) != std::string_view::npos) {
    return {.form = CutText::kAsItIs + std::string(text), .numbers = {}};
  }
  CutText cut;
  cut.form = ReplaceDigits(text, [&](std::string_view digits, std::string_view /*rest*/) {
    const auto number = ParseWhole(digits);
    // The number must print as the same text.
    if (!number || std::to_string(*number) != digits) return std::string(digits);
    cut.numbers.push_back(*number);
    return std::string(1, CutText::kNumberInText);
  });
  cut.form.insert(0, 1, CutText::kWithNumbers);
  return cut;
}

}  // namespace etude
