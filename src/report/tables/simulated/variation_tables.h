#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/report/text/table.h"
#include "src/sim/variants/failures.h"
#include "src/sim/variants/varied_steps.h"

namespace etude {

inline constexpr std::string_view kVariationTable = "variation";  // keys
inline constexpr std::string_view kFailureTable = "failures";

// `step`: without variation, ns. `steps`: at least one, ns.
Table VariationTable(const StepVariation& variation, int64_t step, std::vector<int64_t> steps);
// `simulated`: the useful share in a simulation.
Table FailureTable(int64_t ranks, const Goodput& goodput, double simulated);

}  // namespace etude
