#pragma once

#include <string>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/jobs/edits/applied_edit.h"
#include "src/trace/trace.h"
#include "src/transform/dimensions/dimension_sizes.h"

namespace etude {

// A step with other sizes, and the edit without times of tables.
struct AppliedDimensions {
  DimensionEdit edit;
  AppliedEdit applied;
};

// Returns the options of sizes as given: "--batch 16 --ffn 128".
std::string TextOf(const DimensionSizes& sizes);

// Gives a job of one rank without communication other sizes, by one recording. kBadInput, with the
// reason, for jobs that do not support this.
Result<AppliedDimensions> EditDimensions(const std::vector<Trace>& traces,
                                         const DimensionSizes& sizes, const Limits& limits);

}  // namespace etude
