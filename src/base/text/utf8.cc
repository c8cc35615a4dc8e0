#include "src/base/text/utf8.h"

#include <simdjson.h>

namespace etude::utf8 {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

bool IsValid(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

std::optional<Point> FirstBeyondAscii(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return std::nullopt;
  uint32_t code = first & (0x7FU >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return std::nullopt;
    code = code << 6 | (byte(i) & 0x3FU);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kLeast[length] || code > 0x10FFFF || is_surrogate) return std::nullopt;
  return Point{.code = code, .length = length};
}

std::string Repair(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::optional<Point> point = First(text);
    out += point ? text.substr(0, point->length) : kReplacement;
    text.remove_prefix(point ? point->length : 1);
  }
  return out;
}

}  // namespace etude::utf8
