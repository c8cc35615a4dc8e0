#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "src/compat/stage/stage_differences.h"

namespace etude {

// Returns STAGE's amount of each quantity, the corrections with their causes, and Etude's amount;
// then the values of the names in the formulas.
std::string ToText(const stage::StageDifferences& differences);
// Returns a document of the format "etude-stage-differences".
nlohmann::ordered_json ToJson(const stage::StageDifferences& differences);

}  // namespace etude
