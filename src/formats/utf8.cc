#include "src/formats/utf8.h"

#include <simdjson.h>

#include <algorithm>

namespace etude::utf8 {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

bool IsValid(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

std::string Repair(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t length = 1;
    while (length <= std::min<size_t>(4, text.size()) && !IsValid(text.substr(0, length))) ++length;
    const bool found = length <= std::min<size_t>(4, text.size());
    out += found ? text.substr(0, length) : kReplacement;
    text.remove_prefix(found ? length : 1);
  }
  return out;
}

}  // namespace etude::utf8
