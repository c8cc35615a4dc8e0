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

// The same model, spread in the same way, as a job of ours.
struct Counterpart {
  TransformerModel model;
  TransformerPlan plan;
};
// kBadInput for the model 'debug', and for sizes that cannot be split so.
Result<Counterpart> CounterpartOf(const StageOptions& options);

struct EvaluatedCorrection {
  Correction correction;
  int64_t amount = 0;
};

// One quantity in both jobs, and the corrections that are not 0 between them.
struct Difference {
  Quantity quantity = Quantity::kMatrices;
  int64_t stage = 0;
  std::vector<EvaluatedCorrection> corrections;
  int64_t ours = 0;

  // What no correction explains.
  int64_t rest() const;
};

// A parameter, which has no formula, or a definition, and what it is in a job: "12" or "7/2".
struct NamedValue {
  Definition definition;
  std::string value;
};

struct StageDifferences {
  Counterpart counterpart;
  std::vector<NamedValue> names;
  std::vector<Difference> quantities;  // those of which either job has any
};

// `options` need not have been checked. kBadInput as CheckStageOptions, MakeTensorModel and
// CounterpartOf, and for sizes of STAGE's that are no whole numbers.
Result<StageDifferences> FindStageDifferences(const StageOptions& options);

}  // namespace etude::stage
