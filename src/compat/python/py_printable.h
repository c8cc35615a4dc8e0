#pragma once

#include <cstdint>

namespace etude::compat {

// Returns whether Python's repr() of a string prints `code` unchanged.
bool IsPyPrintable(uint32_t code);

}  // namespace etude::compat
