#include "src/base/text/digit_runs.h"

namespace etude {

std::string WithoutNumbers(std::string_view name, std::string_view mark) {
  return ReplaceDigits(name, [&](std::string_view digits, std::string_view rest) {
    const bool in_word = !rest.empty() && IsLetter(rest.front());
    return in_word ? digits : mark;
  });
}

}  // namespace etude
