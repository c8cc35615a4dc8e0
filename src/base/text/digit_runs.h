#pragma once

#include <string>
#include <string_view>

#include "src/base/text/ascii.h"

namespace etude {

// `text` with `replace(digits, rest)` for each run of digits in it, behind which stands `rest`.
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

// A name with `mark` for each number of layers, micro-batches and the like in it; those in words
// ("conv2d") stay.
std::string WithoutNumbers(std::string_view name, std::string_view mark);

}  // namespace etude
