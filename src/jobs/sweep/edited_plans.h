#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/jobs/generate/generate_job.h"
#include "src/jobs/generate/generate_request.h"
#include "src/sim/sweep/sweep_point.h"

namespace etude {

// Edits the plans of generated jobs that a sweep names: such a point becomes one whose job is
// generated. Reads each job once. Not thread-safe.
class EditedPlans {
 public:
  // Changes the point if its job is generated and edited. Edits that do not fit are stored in the
  // point. Returns kBadInput for edits that jobs of its kind do not support, and for a job that was
  // changed after it was generated.
  Status Apply(SweepPoint& point, const RunContext& context);

 private:
  struct Source {
    GenerateRequest request;
    RequestedPlan plan;
  };
  Result<const std::optional<Source>*> SourceOf(const std::string& path, const RunContext& context);

  std::map<std::string, std::optional<Source>> sources_;  // by path; nullopt: not generated
};

}  // namespace etude
