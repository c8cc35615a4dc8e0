#pragma once

#include <string>
#include <string_view>

namespace etude {

// SHA-256 (FIPS 180-4) in hexadecimal: names things by what is in them.
std::string Sha256(std::string_view bytes);

// HMAC-SHA-256 (RFC 2104) in hexadecimal: only who has the key can make it.
std::string HmacSha256(std::string_view key, std::string_view bytes);

// Whether both texts are the same; takes as long wherever they differ.
bool SameSecret(std::string_view a, std::string_view b);

}  // namespace etude
