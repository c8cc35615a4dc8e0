#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

// How any text gets into a page. Nothing else writes text that comes from a trace.
namespace etude {

// `text` as people may see it: controls, and marks that change the direction of what follows or
// cannot be seen, stand as "\u{202e}"; what is no UTF-8 as U+FFFD; more than `most` code points end
// in "…".
std::string VisibleText(std::string_view text, size_t most = 200);

// VisibleText with the characters that HTML gives a meaning to escaped, also in attributes.
std::string HtmlText(std::string_view text, size_t most = 200);

// JSON to stand in a <script> element: without "<", ">" and "&".
std::string ScriptJson(const nlohmann::ordered_json& json);

// RFC 4648.
std::string Base64(std::string_view bytes);

}  // namespace etude
