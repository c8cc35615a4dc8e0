#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace etude {

// Returns `text` safe for terminals: control characters, bidirectional marks and invalid UTF-8,
// which names in a trace may contain, become \uXXXX, as in JSON.
std::string Printable(std::string_view text);
// Returns the result of Printable, but keeps newlines.
std::string PrintableLines(std::string_view text);

// Returns `text` with the middle of lines longer than `most` bytes replaced by "…".
std::string WithoutLongLines(std::string_view text, size_t most);

// Returns `text` quoted as one shell word.
std::string ShellQuoted(std::string_view text);
// Returns `text` as a value in CSV (RFC 4180), with quotation marks if it needs them.
std::string CsvQuoted(std::string_view text);

}  // namespace etude
