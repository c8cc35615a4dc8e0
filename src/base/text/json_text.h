#pragma once

#include <cstdint>
#include <string_view>

#include "src/base/container/byte_buffer.h"

// Values of JSON in ASCII: other characters of a string are \u escapes.
namespace etude {

// Returns whether all of `text` is from ' ' to '~', without the bytes `a` and `b`.
bool IsAsciiWithout(std::string_view text, char a, char b);

// Puts the last `digits` hexadecimal digits of `code`; requires reserved room.
void PutHex(uint32_t code, int digits, ByteBuffer& out);
// Puts one code point of a string: at most twelve bytes; requires reserved room.
void PutJsonCode(uint32_t code, ByteBuffer& out);
// Appends the inside of the string `text`; invalid UTF-8 becomes U+FFFD.
void AppendJsonText(std::string_view text, ByteBuffer& out);

// Appends `value` in the fewest digits that identify it, with ".0" if it is whole; NaN, Infinity or
// -Infinity if it is not finite (which JSON lacks and Python's json module writes).
void AppendJsonFloat(double value, ByteBuffer& out);

}  // namespace etude
