#pragma once

#include <string>
#include <string_view>

namespace etude {

// Returns the first line of a libtorch error; a stack trace follows it.
inline std::string FirstLine(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

}  // namespace etude
