#pragma once

namespace etude {

// What they say does not depend on the locale.
constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
// A blank of JSON and of Python literals.
constexpr bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace etude
