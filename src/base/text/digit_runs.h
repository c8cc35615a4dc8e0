#pragma once

#include <string>
#include <string_view>

#include "src/base/text/ascii.h"

namespace etude {

// Returns `text` with each run of digits replaced by `replace(digits, rest)`, where `rest` is the
// text after the run.
template <typename Replace>
std::string ReplaceDigits(std::string_view text, Replace replace) {
  std::string replaced;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && IsDigit(text[end])) ++end;
    if (end == at) {
      replaced += text[at++];
      continue;
    }
    replaced += replace(text.substr(at, end - at), text.substr(end));
    at = end;
  }
  return replaced;
}

// Returns `name` with its numbers of layers, micro-batches and the like replaced by `mark`. Digits
// inside words ("conv2d") stay.
std::string WithoutNumbers(std::string_view name, std::string_view mark);

}  // namespace etude
