#pragma once

namespace etude {

// The only value of `--compat` in other commands.
inline constexpr const char* kCompatChakra = "chakra-1.0.0";

}  // namespace etude
