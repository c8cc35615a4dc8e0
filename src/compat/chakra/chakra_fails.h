#pragma once

#include <fmt/format.h>

#include <string_view>

#include "src/base/result.h"

namespace etude::compat {

// An error of a file on which Chakra's tool stops too, with the Python exception it stops with.
inline tl::unexpected<Error> ChakraFails(std::string_view where, std::string_view what,
                                         std::string_view exception) {
  return BadInput(
      fmt::format("{}: found {}; Chakra 1.0.0 fails here too ({})", where, what, exception));
}

}  // namespace etude::compat
