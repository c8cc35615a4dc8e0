#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "src/compat/chakra/byte_buffer.h"

// What Python makes of JSON texts, which JsonScanner has checked.
namespace etude::compat {

// Whether the string with quotes `json` contains no escape: then its characters are its text.
inline bool IsPlain(std::string_view json) { return json.find('\\') == std::string_view::npos; }
// The characters of a string with quotes. Lone surrogates become three bytes each, which is not
// valid UTF-8; HasSurrogate tells.
std::string DecodeString(std::string_view json);
bool HasSurrogate(std::string_view decoded);

// `json` with each repeated key of an object at its first place with its last value, and without
// escapes in keys: what is left of it in a Python dict.
std::string WithoutRepeatedKeys(std::string_view json);

// What json.dump(value, indent=4) writes for `json` where `level` containers are open around it.
void AppendPyDump(std::string_view json, size_t level, ByteBuffer& out);
// The same for one string, with quotes on both sides.
void AppendPyDumpString(std::string_view json, ByteBuffer& out);
// The inside of the string that json.dump writes for `text`, which is no JSON but the characters
// themselves, in valid UTF-8.
void AppendPyDumpText(std::string_view text, ByteBuffer& out);
// What str(value) is for `json`: for a string its characters, else the repr.
void AppendPyStr(std::string_view json, ByteBuffer& out);
// repr() of a float and, if `json`, what json.dump makes of it: they differ in NaN and infinities.
void AppendPyFloat(double value, bool json, ByteBuffer& out);

// A newline and the blanks of `level` open containers.
inline void AppendPyIndent(size_t level, ByteBuffer& out) {
  out.Append('\n');
  out.AppendSpaces(4 * level);
}

}  // namespace etude::compat
