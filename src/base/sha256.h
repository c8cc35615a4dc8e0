#pragma once

#include <string>
#include <string_view>

namespace etude {

// Returns the SHA-256 digest (FIPS 180-4) in hexadecimal, for content-based names.
std::string Sha256(std::string_view bytes);

// Returns the HMAC-SHA-256 (RFC 2104) in hexadecimal.
std::string HmacSha256(std::string_view key, std::string_view bytes);

// Returns true if both texts are equal. For texts of equal length the time does not depend on where
// they differ.
bool SameSecret(std::string_view a, std::string_view b);

}  // namespace etude
