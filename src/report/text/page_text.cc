#include "src/report/text/page_text.h"

#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "src/base/text/utf8.h"

namespace etude {
namespace {

// Must match `kHidden` of assets/text.js.
bool IsHidden(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == 0xAD || code == 0x61C ||
         (code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF ||
         (code >= 0xE0000 && code <= 0xE0FFF);
}

// Returns the bytes of the code point that starts with `first`, in valid UTF-8.
size_t LengthOf(unsigned char first) {
  return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

uint32_t CodeOf(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  if (bytes.size() == 1) return first;
  uint32_t code = first & (0x7FU >> bytes.size());
  for (const char byte : bytes.substr(1)) {
    code = code << 6 | (static_cast<unsigned char>(byte) & 0x3FU);
  }
  return code;
}

}  // namespace

std::string VisibleText(std::string_view text, size_t most) {
  // A code point has at most four bytes, so later bytes are irrelevant.
  const std::string valid =
      utf8::Repair(text.substr(0, most < text.size() / 4 ? 4 * most + 4 : text.size()));
  std::string visible;
  size_t points = 0;
  for (size_t i = 0; i < valid.size();) {
    if (points++ == most) return visible + "…";
    const size_t length = LengthOf(static_cast<unsigned char>(valid[i]));
    const std::string_view bytes = std::string_view(valid).substr(i, length);
    const uint32_t code = CodeOf(bytes);
    if (IsHidden(code)) {
      visible += fmt::format("\\u{{{:x}}}", code);
    } else {
      visible += bytes;
    }
    i += length;
  }
  return visible;
}

std::string HtmlText(std::string_view text, size_t most) {
  std::string html;
  for (const char c : VisibleText(text, most)) {
    switch (c) {
      case '&': html += "&amp;"; break;
      case '<': html += "&lt;"; break;
      case '>': html += "&gt;"; break;
      case '"': html += "&quot;"; break;
      case '\'': html += "&#39;"; break;
      default: html += c;
    }
  }
  return html;
}

std::string ScriptJson(const nlohmann::ordered_json& json) {
  std::string dumped = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string text;
  text.reserve(dumped.size());
  for (const char c : dumped) {
    switch (c) {
      case '<': text += "\\u003c"; break;
      case '>': text += "\\u003e"; break;
      case '&': text += "\\u0026"; break;
      default: text += c;
    }
  }
  return text;
}

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto byte = [&](size_t i) -> uint32_t {
    return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0;
  };
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    text += kDigits[group >> 18];
    text += kDigits[group >> 12 & 63];
    text += i + 1 < bytes.size() ? kDigits[group >> 6 & 63] : '=';
    text += i + 2 < bytes.size() ? kDigits[group & 63] : '=';
  }
  return text;
}

}  // namespace etude
