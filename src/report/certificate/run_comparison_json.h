#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/formats/json/json_document.h"
#include "src/report/certificate/run_comparison.h"

// Comparisons as `etude compare --run` leaves them: docs/formats/compare.md.
namespace etude {

nlohmann::ordered_json ToJson(const RunComparison& run);
nlohmann::ordered_json ToJson(const MetricComparison& metric);
// null where it is unknown, and members where they are infinite.
nlohmann::ordered_json ToJson(const std::optional<Estimate>& estimate, std::string_view value_name);
RunComparison ParseRunComparison(const JsonMembers& members);

// Reads compare.N.json. kBadInput if it is none.
Result<RunComparison> ReadRunComparison(const std::string& path, const RunContext& context);

// kBadInput, with `where` in front, unless the figures and verdicts are those of the pairs.
Status CheckFigures(const std::string& where, const RunComparison& run);

}  // namespace etude
