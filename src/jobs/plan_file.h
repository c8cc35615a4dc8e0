#pragma once

#include <optional>
#include <string>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/sim/sweep/plan_facts.h"

namespace etude {

// The file next to classes.json in which `etude generate` writes the job's plan
// (docs/formats/job_folder.md).
inline constexpr std::string_view kPlanFile = "plan.json";

// Writes the plan into the folder of its job, which is written already.
Status WritePlanFile(const PlanFacts& facts, const std::string& folder, const Limits& limits);

// Reads the plan of the job in a folder. Returns nullopt without one. A damaged plan, or that of
// another job, counts as none with a warning; with `strict` it is kBadInput.
Result<std::optional<PlanFacts>> ReadPlanFile(const std::string& folder, bool strict,
                                              const RunContext& context);

}  // namespace etude
