#include "src/base/text/printable.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "src/base/text/utf8.h"

namespace etude {
namespace {

constexpr uint32_t kReplacementCode = 0xFFFD;

bool Steers(uint32_t code) {
  const auto within = [code](uint32_t from, uint32_t to) { return code >= from && code <= to; };
  return code < 0x20 || within(0x7F, 0x9F) ||               // C0, DEL and C1
         within(0x200E, 0x200F) || code == 0x061C ||        // directional marks
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
    const utf8::Point point =
        utf8::First(text).value_or(utf8::Point{.code = kReplacementCode, .length = 1});
    if (Steers(point.code)) {
      out += fmt::format("\\u{:04x}", point.code);
    } else if (point.code == kReplacementCode) {
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

std::string WithoutLongLines(std::string_view text, size_t most) {
  const auto continues = [&](size_t at) {  // true within a multi-byte character
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  std::string shown;
  for (size_t begin = 0; begin < text.size();) {
    const size_t newline = text.find('\n', begin);
    const size_t end = newline == std::string_view::npos ? text.size() : newline + 1;
    if (end - begin <= most) {
      shown += text.substr(begin, end - begin);
    } else {
      size_t head = begin + most / 2;
      while (head > begin && continues(head)) --head;
      size_t tail = end - most / 2;
      while (continues(tail)) ++tail;
      shown += text.substr(begin, head - begin);
      shown += "…";
      shown += text.substr(tail, end - tail);
    }
    begin = end;
  }
  return shown;
}

std::string ShellQuoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string CsvQuoted(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace etude
