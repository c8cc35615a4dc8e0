#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/report/page/page.h"
#include "src/report/text/table.h"
#include "src/sim/sweep/plan_rule.h"
#include "src/sim/sweep/sweep_result.h"
#include "src/sim/sweep/sweep_spec.h"

namespace etude {

// Combinations of [[plans]], and those that are no plan.
struct SweepPlans {
  uint64_t combinations = 0;
  uint64_t kept = 0;
  std::vector<PlanRefusals> refusals;
};

// What a sweep found.
struct SweepResults {
  std::string path;                    // of the spec
  std::vector<std::string> axes;       // their names
  std::vector<SweepRow> rows;          // by point
  std::vector<SweepMeasure> measures;  // of the front; may be empty
  size_t points = 0;                   // of the sweep: more than rows where it is a part
  std::optional<SweepPlans> plans;
  std::optional<SweepOrder> order;  // what points are ranked by; nullopt: DefaultOrder
};

// A row for each point, in their order.
Table SweepPointTable(const SweepResults& results);
// Those of the Pareto front, the best first.
Table SweepFrontTable(const SweepResults& results);
// What simulations leave out, and of how many points.
Table SweepNoteTable(const SweepResults& results);
// Why points are not done.
Table SweepFailureTable(const SweepResults& results);

// The `top` best points (0: all), the front, notes, and what is not done.
std::string SweepText(const SweepResults& results, size_t top);
// {"format": "etude-sweep", …}: docs/formats/sweep.md.
nlohmann::ordered_json SweepJson(const SweepResults& results);
Page SweepPage(const SweepResults& results);

}  // namespace etude
