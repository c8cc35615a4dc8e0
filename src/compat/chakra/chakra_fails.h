#pragma once

#include <fmt/format.h>

#include <string_view>

#include "src/base/result.h"

namespace etude::compat {

// Returns an error in a file that also stops Chakra's tool, with the Python exception that the tool
// raises.
inline tl::unexpected<Error> ChakraFails(std::string_view where, std::string_view what,
                                         std::string_view exception) {
  return BadInput(
      fmt::format("{}: found {}; Chakra 1.0.0 fails here too ({})", where, what, exception));
}

}  // namespace etude::compat
