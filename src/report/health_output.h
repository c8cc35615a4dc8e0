#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "src/analysis/health.h"

namespace etude {

// {"verdict": "usable", "reasons": [{"verdict", "name", "text"}]}
nlohmann::ordered_json ToJson(const Health& health);
// "usable" and a line per reason, indented; one line "good" if there are none.
std::string ToText(const Health& health);

}  // namespace etude
