#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace etude::utf8 {

// Writes the one to four bytes of `code` to `out`, which must have room for four, and returns their
// number. Surrogates are written like other codes.
constexpr size_t Encode(uint32_t code, char* out) {
  const auto put = [&](size_t i, uint32_t byte) { out[i] = static_cast<char>(byte); };
  if (code < 0x80) {
    put(0, code);
    return 1;
  }
  const size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = length; i-- > 1; code >>= 6) put(i, 0x80 | (code & 0x3F));
  put(0, ((0xF00U >> length) & 0xFF) | code);
  return length;
}

bool IsValid(std::string_view text);

struct Point {
  uint32_t code = 0;
  size_t length = 0;  // in bytes
};
// Returns the first code point of `text`, which must not be empty; nullopt if invalid.
std::optional<Point> FirstBeyondAscii(std::string_view text);
inline std::optional<Point> First(std::string_view text) {
  const auto byte = static_cast<uint8_t>(text.front());
  return byte < 0x80 ? Point{.code = byte, .length = 1} : FirstBeyondAscii(text);
}

// Returns `text` with each byte outside valid UTF-8 replaced by U+FFFD.
std::string Repair(std::string_view text);

}  // namespace etude::utf8
