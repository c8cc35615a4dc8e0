#pragma once

#include <cstdint>

namespace etude {

// Returns a / b, rounded up; a >= 0, b > 0.
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace etude
