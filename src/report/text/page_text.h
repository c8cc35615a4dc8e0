#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

// Escaping of text for pages. All text that comes from a trace passes through here.
namespace etude {

// Returns printable text. Control characters, invisible ones and marks of writing direction become
// "\u{202e}", invalid UTF-8 becomes U+FFFD, and text beyond `most` code points becomes "…".
std::string VisibleText(std::string_view text, size_t most = 200);

// Returns VisibleText, escaped for HTML content and attributes.
std::string HtmlText(std::string_view text, size_t most = 200);

// Returns JSON that is safe in a <script> element: without "<", ">" and "&".
std::string ScriptJson(const nlohmann::ordered_json& json);

// Encodes by RFC 4648.
std::string Base64(std::string_view bytes);

}  // namespace etude
