#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "src/base/units.h"

// The plan of a generated job, as far as it says how good a simulated step is.
// docs/models/utilization.md has the formulas.
namespace etude {

// Memory of the rank that needs most, at its peak.
struct PlanMemory {
  Bytes peak;
  Bytes weights;  // of the peak, as all that follow
  Bytes gradients;
  Bytes optimizer;
  Bytes cache;  // of earlier tokens, before the step

  // What is left: activations, and copies that live for a part of the step.
  Bytes activations() const {
    return Bytes{peak.count - weights.count - gradients.count - optimizer.count - cache.count};
  }
  friend bool operator==(const PlanMemory&, const PlanMemory&) = default;
};

struct PlanFacts {
  int64_t ranks = 0;             // 1 or more
  std::string item;              // what a step processes: "token", "sample", "image"
  int64_t items = 0;             // of a step, over all ranks
  double flops = 0;              // that the model needs for a step, over all ranks
  std::optional<double> bubble;  // share of the step that a pipeline is idle by its schedule
  PlanMemory memory;
  std::string device;             // that durations are of; "": none
  std::optional<double> peak;     // of a device: operations a second in matrix products
  std::optional<Bytes> capacity;  // of a device's memory

  friend bool operator==(const PlanFacts&, const PlanFacts&) = default;
};

// Figures of a step that takes so long.
struct PlanRates {
  double items_per_second = 0;
  double items_per_second_per_device = 0;
  std::optional<double> mfu;  // model FLOPs utilization: 0..1, above 1 with masked attention
};
// nullopt: a step of no time.
std::optional<PlanRates> RatesOf(const PlanFacts& facts, Nanos step);

nlohmann::ordered_json ToJson(const PlanFacts& facts);
// nullopt for what ToJson does not write.
std::optional<PlanFacts> ReadPlanFacts(const nlohmann::ordered_json& json);

}  // namespace etude
