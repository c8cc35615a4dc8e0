#pragma once

#include <string_view>

namespace etude {

// Version of this build; CHANGELOG.md describes it.
inline constexpr std::string_view kVersion = ETUDE_VERSION;

}  // namespace etude
