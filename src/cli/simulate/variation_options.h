#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/cli/app/options.h"
#include "src/report/text/table.h"
#include "src/sim/engine/simulator.h"

namespace etude {

// Options of `etude simulate` for random differences between computations, and failures:
// docs/models/variation.md.
struct VariationOptions {
  std::optional<double> noise;
  std::string slow_ranks;
  std::optional<int64_t> runs;
  std::optional<int64_t> seed;
  std::string mtbf;
  std::string checkpoint;
  std::string restart;
  std::string interval;

  bool varies() const { return noise || !slow_ranks.empty(); }
  bool fails() const { return !mtbf.empty(); }

  friend bool operator==(const VariationOptions&, const VariationOptions&) = default;
};

void DeclareVariation(VariationOptions& variation, Options& options);

// kUsage for values of the wrong form, and for a `wanted` table that the options do not give.
Status CheckVariation(const VariationOptions& variation, const std::string& wanted);

// Returns the tables that the options request. `step`: without them, ns. Requires CheckVariation.
Result<std::vector<Table>> VariationTables(const VariationOptions& variation,
                                           const SimMachine& machine, const SimWorkload& workload,
                                           int64_t step, const RunContext& context);

}  // namespace etude
