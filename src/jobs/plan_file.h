#pragma once

#include <optional>
#include <string>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/sim/sweep/plan_facts.h"

namespace etude {

// The file beside classes.json in which `etude generate` says what the job's plan is:
// docs/formats/job_folder.md.
inline constexpr std::string_view kPlanFile = "plan.json";

// Into the folder of the job that it is of, which is written.
Status WritePlanFile(const PlanFacts& facts, const std::string& folder, const Limits& limits);

// The plan of the job in a folder; nullopt where there is none. One that is damaged, or of another
// job than that in the folder, counts as none with a warning; `strict`: kBadInput.
Result<std::optional<PlanFacts>> ReadPlanFile(const std::string& folder, bool strict,
                                              const RunContext& context);

}  // namespace etude
