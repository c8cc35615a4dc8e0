#include "src/base/printable.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

namespace etude {
namespace {

constexpr uint32_t kReplacement = 0xFFFD;

struct Point {
  uint32_t code = kReplacement;
  size_t length = 1;  // bytes
};

// The code point that `text` begins with; the replacement for a byte that begins none.
Point FirstPoint(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return {};
  uint32_t code = first & (0x7FU >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3FU);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kLeast[length] || code > 0x10FFFF || is_surrogate) return {};
  return {code, length};
}

bool Steers(uint32_t code) {
  const auto within = [code](uint32_t from, uint32_t to) { return code >= from && code <= to; };
  return code < 0x20 || within(0x7F, 0x9F) ||               // C0, DEL and C1
         within(0x200E, 0x200F) || code == 0x061C ||        // marks of direction
         within(0x2028, 0x202E) || within(0x2066, 0x2069);  // line ends, embeddings, isolates
}

std::string Escape(std::string_view text, bool keep_newlines) {
  const auto is_plain = [&](char c) {
    return (c >= 0x20 && c < 0x7F) || (keep_newlines && c == '\n');
  };
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto plain = static_cast<size_t>(std::ranges::find_if_not(text, is_plain) - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const Point point = FirstPoint(text);
    if (Steers(point.code)) {
      out += fmt::format("\\u{:04x}", point.code);
    } else if (point.code == kReplacement) {
      out += "\xEF\xBF\xBD";
    } else {
      out += text.substr(0, point.length);
    }
    text.remove_prefix(point.length);
  }
  return out;
}

}  // namespace

std::string Printable(std::string_view text) { return Escape(text, /*keep_newlines=*/false); }

std::string PrintableLines(std::string_view text) { return Escape(text, /*keep_newlines=*/true); }

}  // namespace etude
