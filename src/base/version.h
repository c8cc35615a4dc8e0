#pragma once

#include <string_view>

namespace etude {

// The version of this build; CHANGELOG.md says what changed.
inline constexpr std::string_view kVersion = ETUDE_VERSION;

}  // namespace etude
