#pragma once

#include <cstdint>

namespace etude::compat {

// Whether Python's repr() of a string shows `code` as it is.
bool IsPyPrintable(uint32_t code);

}  // namespace etude::compat
