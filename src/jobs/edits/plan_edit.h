#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/jobs/generate/generate_job.h"
#include "src/jobs/generate/generate_request.h"
#include "src/jobs/plan_file.h"
#include "src/synth/device/misfit.h"

// Edits of generated jobs by their plans: docs/models/what_if.md.
namespace etude {

// The batch that stays when the number of replicas changes.
enum class KeptBatch : uint8_t {
  kRank,    // samples of a replica
  kGlobal,  // samples of all replicas together
};

// Edits of the plan of a generated job.
struct PlanEdits {
  GenerateRequest options;  // those given replace the plan's; other members are ignored
  KeptBatch keep = KeptBatch::kRank;
  std::optional<int64_t> global_batch;  // samples of a step over all replicas; nullopt: by `keep`

  // Returns the names of the given options: "--tp".
  std::vector<std::string> Given() const;
  bool empty() const { return Given().empty() && !global_batch; }
};

// Returns the request of the edited job, or the settings that do not fit together. `plan` belongs
// to `request`.
tl::expected<GenerateRequest, Misfit> TryEdit(const GenerateRequest& request,
                                              const RequestedPlan& plan, const PlanEdits& edits,
                                              const RunContext& context);
// Works like TryEdit, but with an error as message. `plan` is that of `request`. Returns kUsage for
// options that the kind of model does not take, and kBadInput for plans that do not fit, with the
// nearest values of the edited options that do.
Result<GenerateRequest> EditRequest(const GenerateRequest& request, const RequestedPlan& plan,
                                    const PlanEdits& edits, const RunContext& context);

// The plan of a job before or after an edit.
struct PlanSummary {
  PlanFacts facts;
  nlohmann::ordered_json settings;  // as in GeneratedJob
  uint64_t nodes = 0;               // over all ranks
};

// Returns kBadInput if the traces are not those that the plan was written for.
Status CheckPlanOfJob(const FoundPlan& found);

// An edited job that was written.
struct EditedJob {
  PlanSummary before;
  PlanSummary after;
  WrittenJob written;
  std::vector<std::string> edits;  // as given, "--tp 4"
};

// Edits the generated job of `paths` and writes it as classes into the folder `output`, with
// changes.json. Returns nullopt if `paths` are no generated job, and kBadInput for a job that was
// changed after it was generated. Other errors as in EditRequest and GenerateJob.
Result<std::optional<EditedJob>> EditGeneratedJob(const std::vector<std::string>& paths,
                                                  const PlanEdits& edits, const std::string& output,
                                                  const RunContext& context);

// Returns the changes of an edited job: changes.json.
nlohmann::ordered_json ToJson(const EditedJob& job, const std::vector<std::string>& paths);
// Returns the changes as lines.
std::string ToText(const EditedJob& job, const std::string& output);

// Returns the error for edits of a job that is not generated: why recorded jobs do not support
// them, and the nearest edit that they do.
tl::unexpected<Error> NotGenerated(const std::string& path, const PlanEdits& edits);

}  // namespace etude
