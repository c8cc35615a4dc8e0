#pragma once

#include <string>
#include <string_view>

namespace etude {

// SHA-256 (FIPS 180-4) in hexadecimal: names things by what is in them.
std::string Sha256(std::string_view bytes);

}  // namespace etude
