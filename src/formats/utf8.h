#pragma once

#include <string>
#include <string_view>

namespace etude::utf8 {

bool IsValid(std::string_view text);

// `text` with each byte that is no part of valid UTF-8 replaced by U+FFFD.
std::string Repair(std::string_view text);

}  // namespace etude::utf8
