#pragma once

#include "src/jobs/generate/model_kind.h"
#include "src/sim/sweep/plan_facts.h"
#include "src/synth/device/device_model.h"

namespace etude {

// Returns the facts of a generated job's plan. `device`: nullptr without one.
PlanFacts PlanFactsOf(const GeneratedJob& made, const DeviceModel* device);

}  // namespace etude
