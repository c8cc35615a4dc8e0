#pragma once

#include <optional>
#include <string>

#include "src/sim/sweep/plan_facts.h"

namespace etude {

// Throughput and memory of a simulated step of a plan, a line each.
std::string PlanText(const PlanFacts& plan, const std::optional<PlanRates>& rates);

}  // namespace etude
