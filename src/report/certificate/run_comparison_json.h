#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/formats/json/json_document.h"
#include "src/report/certificate/run_comparison.h"

// JSON of `etude compare --run`: docs/formats/compare.md.
namespace etude {

nlohmann::ordered_json ToJson(const RunComparison& run);
nlohmann::ordered_json ToJson(const MetricComparison& metric);
// Returns null for an unknown estimate; infinite members are null.
nlohmann::ordered_json ToJson(const std::optional<Estimate>& estimate, std::string_view value_name);
RunComparison ParseRunComparison(const JsonMembers& members);

// Reads compare.N.json. kBadInput if it is invalid.
Result<RunComparison> ReadRunComparison(const std::string& path, const RunContext& context);

// Checks that figures and verdicts match the pairs. kBadInput, prefixed with `where`, if they do
// not.
Status CheckFigures(const std::string& where, const RunComparison& run);

}  // namespace etude
