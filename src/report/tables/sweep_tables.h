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

// Combinations of [[plans]], with the rejected ones.
struct SweepPlans {
  uint64_t combinations = 0;
  uint64_t kept = 0;
  std::vector<PlanRefusals> refusals;
};

// Results of a sweep.
struct SweepResults {
  std::string path;                    // of the spec
  std::vector<std::string> axes;       // names
  std::vector<SweepRow> rows;          // by point
  std::vector<SweepMeasure> measures;  // of the Pareto front; may be empty
  size_t points = 0;                   // in the sweep; may exceed the number of rows
  std::optional<SweepPlans> plans;
  bool is_constrained = false;      // whether the sweep has constraints
  std::optional<SweepOrder> order;  // ranking; nullopt: DefaultOrder
};

// Returns a row per point, in order.
Table SweepPointTable(const SweepResults& results);
// Returns the rows of the Pareto front, best first.
Table SweepFrontTable(const SweepResults& results);
// Returns limitations of the simulations, with the number of points.
Table SweepNoteTable(const SweepResults& results);
// Returns the reasons for points that are not done.
Table SweepFailureTable(const SweepResults& results);

// Returns the `top` best points (0: all), the front, notes, and failures.
std::string SweepText(const SweepResults& results, size_t top);
// {"format": "etude-sweep", …}: docs/formats/sweep.md.
nlohmann::ordered_json SweepJson(const SweepResults& results);
Page SweepPage(const SweepResults& results);

}  // namespace etude
