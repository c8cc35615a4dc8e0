#pragma once

#include <string>
#include <string_view>

namespace etude {

// What libtorch's errors begin with; a stack trace follows.
inline std::string FirstLine(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

}  // namespace etude
