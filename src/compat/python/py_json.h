#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "src/base/container/byte_buffer.h"

// Python's view of JSON texts that JsonScanner has checked.
namespace etude::compat {

// Returns whether the string with quotes `json` has no escapes, so that its characters are its
// text.
inline bool IsPlain(std::string_view json) { return json.find('\\') == std::string_view::npos; }
// Decodes a string with quotes. Lone surrogates become three bytes each, which is invalid UTF-8;
// HasSurrogate detects them.
std::string DecodeString(std::string_view json);
bool HasSurrogate(std::string_view decoded);

// Returns `json` as a Python dict would keep it: repeated keys have their first position and last
// value, and keys have no escapes.
std::string WithoutRepeatedKeys(std::string_view json);

// Appends the output of json.dump(value, indent=4) for `json`, inside `level` open containers.
void AppendPyDump(std::string_view json, size_t level, ByteBuffer& out);
// Appends the output for one string, with quotes in input and output.
void AppendPyDumpString(std::string_view json, ByteBuffer& out);
// Appends str(value) for `json`: the characters of a string, otherwise the repr.
void AppendPyStr(std::string_view json, ByteBuffer& out);
// Appends repr() of a float.
void AppendPyFloat(double value, ByteBuffer& out);

// Appends a newline and the indentation of `level` open containers.
inline void AppendPyIndent(size_t level, ByteBuffer& out) {
  out.Append('\n');
  out.AppendSpaces(4 * level);
}

}  // namespace etude::compat
