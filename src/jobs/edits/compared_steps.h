#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/report/text/table.h"

namespace etude {

// The file in the folder of a simulated job with its step beside recorded and measured ones
// (docs/models/simulated_job.md).
inline constexpr std::string_view kStepsFile = "steps.json";

// An edit as it appears in files.
struct EditLine {
  std::string edit;       // "--dp 8"
  std::string certainty;  // "structure exact"
  std::string text;
};

// Steps of an edited job, or one with measured ones, side by side.
struct ComparedSteps {
  std::vector<EditLine> edits;  // empty for a job without edits
  Table steps;                  // MeasuredTable
};

// Writes the file into the folder of a simulated job; nullopt removes that of an earlier one.
Status WriteComparedSteps(const std::optional<ComparedSteps>& compared, const std::string& folder);

// Reads the file in a folder, or for an edited job that was not simulated, its edits and the step
// before them. nullopt for a folder without both; kBadInput for a damaged file.
Result<std::optional<ComparedSteps>> ReadComparedSteps(const std::string& folder,
                                                       const RunContext& context);

// Returns the tables of a folder: its edits, if any, and the steps.
std::vector<Table> TablesOf(const ComparedSteps& compared);

}  // namespace etude
