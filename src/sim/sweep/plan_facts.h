#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "src/base/units.h"

// Facts of a generated job's plan that are needed to rate a simulated step. Formulas:
// docs/models/utilization.md.
namespace etude {

// Peak memory of the rank with the highest need.
struct PlanMemory {
  Bytes peak;
  Bytes weights;  // part of the peak, like the fields below
  Bytes gradients;
  Bytes optimizer;
  Bytes cache;  // cache of earlier tokens, before the step

  // Returns the remainder: activations, and temporary copies.
  Bytes activations() const {
    return Bytes{peak.count - weights.count - gradients.count - optimizer.count - cache.count};
  }
  friend bool operator==(const PlanMemory&, const PlanMemory&) = default;
};

struct PlanFacts {
  int64_t ranks = 0;             // 1 or more
  std::string item;              // unit of work: "token", "sample", "image"
  int64_t items = 0;             // per step, over all ranks
  double flops = 0;              // that the model needs per step, over all ranks
  std::optional<double> bubble;  // share of the step that a pipeline is idle by its schedule
  PlanMemory memory;
  std::string device;             // device of the durations; "": none
  std::optional<double> peak;     // operations per second of a device, in matrix products
  std::optional<Bytes> capacity;  // memory of a device

  friend bool operator==(const PlanFacts&, const PlanFacts&) = default;
};

// Rates of a step with a given duration.
struct PlanRates {
  double items_per_second = 0;
  double items_per_second_per_device = 0;
  std::optional<double> mfu;  // model FLOPs utilization: 0..1, above 1 with masked attention
};
// Returns the rates; nullopt if the step takes no time.
std::optional<PlanRates> RatesOf(const PlanFacts& facts, Nanos step);

nlohmann::ordered_json ToJson(const PlanFacts& facts);
// Reads the output of ToJson; nullopt for anything else.
std::optional<PlanFacts> ReadPlanFacts(const nlohmann::ordered_json& json);

}  // namespace etude
