#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/jobs/generate/generate_request.h"
#include "src/sim/sweep/plan_facts.h"

namespace etude {

// The file next to classes.json in which `etude generate` writes the job's plan
// (docs/formats/job_folder.md). Next to PREFIX.0.et … it is called PREFIX.plan.json.
inline constexpr std::string_view kPlanFile = "plan.json";

// The plan of a generated job.
struct JobPlan {
  PlanFacts facts;
  uint64_t nodes = 0;                      // over all ranks
  std::optional<GenerateRequest> request;  // with the contents of its files, without output
};

// Writes the plan into the folder of its job in classes, which is written already.
Status WritePlanFile(const JobPlan& plan, const std::string& folder, const Limits& limits);
// Writes the plan next to PREFIX.0.et …, which are written already. `groups`: the file of process
// groups; "": none.
Status WritePlanOfRanks(const JobPlan& plan, const std::string& prefix, const std::string& groups,
                        const Limits& limits);

// Reads the plan of the job in a folder. Returns nullopt without one. A damaged plan, or that of
// another job, counts as none with a warning; with `strict` it is kBadInput.
Result<std::optional<PlanFacts>> ReadPlanFile(const std::string& folder, bool strict,
                                              const RunContext& context);

// A plan next to traces.
struct FoundPlan {
  std::string path;  // of the plan's file
  JobPlan plan;
  // Difference between the traces and those that the plan was written for; "": none.
  std::string mismatch;
};
// Finds the plan next to a job: a folder of classes or of PREFIX.0.et …, PREFIX, or all of these
// files. Compares the contents of all files. Returns nullopt without a plan, and kBadInput for a
// damaged one.
Result<std::optional<FoundPlan>> FindPlanOfJob(std::span<const std::string> paths,
                                               const RunContext& context);
// Finds the plan next to one trace of a job, or next to a job. Does not compare contents of traces.
Result<std::optional<FoundPlan>> FindPlanBeside(const std::string& path, const RunContext& context);

}  // namespace etude
