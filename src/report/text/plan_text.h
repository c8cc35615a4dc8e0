#pragma once

#include <optional>
#include <string>

#include "src/sim/sweep/plan_facts.h"

namespace etude {

// Returns throughput and memory of a plan's simulated step, one line each.
std::string PlanText(const PlanFacts& plan, const std::optional<PlanRates>& rates);

}  // namespace etude
