#pragma once

namespace etude {

// The one choice of `--compat` of other commands.
inline constexpr const char* kCompatChakra = "chakra-1.0.0";

}  // namespace etude
