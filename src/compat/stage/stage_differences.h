#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/compat/stage/stage_corrections.h"
#include "src/compat/stage/stage_model.h"
#include "src/synth/transformer/transformer_model.h"
#include "src/synth/transformer/transformer_program.h"

namespace etude::stage {

// Etude's job for the same model with the same parallelism.
struct Counterpart {
  TransformerModel model;
  TransformerPlan plan;
};
// Makes the counterpart. kBadInput for the model 'debug', and for sizes that cannot be divided.
Result<Counterpart> CounterpartOf(const StageOptions& options);

struct EvaluatedCorrection {
  Correction correction;
  int64_t amount = 0;
};

// One quantity in both jobs, and the non-zero corrections between them.
struct Difference {
  Quantity quantity = Quantity::kMatrices;
  int64_t stage = 0;
  std::vector<EvaluatedCorrection> corrections;
  int64_t ours = 0;

  // Returns the unexplained difference.
  int64_t rest() const;
};

// A parameter (without formula) or a definition, and its value in a job: "12" or "7/2".
struct NamedValue {
  Definition definition;
  std::string value;
};

struct StageDifferences {
  Counterpart counterpart;
  std::vector<NamedValue> names;
  std::vector<Difference> quantities;  // quantities that occur in either job
};

// Compares the jobs. `options` need not be checked. kBadInput as for CheckStageOptions,
// MakeTensorModel and CounterpartOf, and for STAGE sizes that are not integers.
Result<StageDifferences> FindStageDifferences(const StageOptions& options);

}  // namespace etude::stage
