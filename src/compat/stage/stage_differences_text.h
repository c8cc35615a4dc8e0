#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "src/compat/stage/stage_differences.h"

namespace etude {

// STAGE's amount of each quantity, what is added to it and why, and ours; then what the names in
// the formulas are in this job.
std::string ToText(const stage::StageDifferences& differences);
// The same as a document of the format "etude-stage-differences".
nlohmann::ordered_json ToJson(const stage::StageDifferences& differences);

}  // namespace etude
