#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace etude {

// `text` for terminals: what steers them (control characters, marks of writing direction, bytes
// that are not UTF-8), which names in a trace may hold, as \uXXXX, in which form JSON has it too.
std::string Printable(std::string_view text);
// The same for whole answers: newlines stay.
std::string PrintableLines(std::string_view text);

// `text`, of which lines longer than `most` bytes, as names may make them, lose their middle: "…".
std::string WithoutLongLines(std::string_view text, size_t most);

// `text` as one word of a shell.
std::string ShellQuoted(std::string_view text);

}  // namespace etude
