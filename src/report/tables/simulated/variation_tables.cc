#include "src/report/tables/simulated/variation_tables.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "src/analysis/time/time_summary.h"

namespace etude {

Table VariationTable(const StepVariation& variation, int64_t step, std::vector<int64_t> steps) {
  Table table{.key = std::string(kVariationTable),
              .title = "steps with random differences",
              .columns = {{"runs", "runs", Unit::kCount},
                          {"seed", "seed", Unit::kText},
                          {"step_ns", "without", Unit::kTime},
                          {"mean_ns", "mean", Unit::kTime},
                          {"p5_ns", "p5", Unit::kTime},
                          {"median_ns", "median", Unit::kTime},
                          {"p95_ns", "p95", Unit::kTime},
                          {"longest_ns", "longest", Unit::kTime},
                          {"slowdown_share", "slow-down", Unit::kChange}},
              .rows = {}};
  std::ranges::sort(steps);
  std::vector<Nanos> sorted;
  for (const int64_t one : steps) sorted.push_back(Nanos{one});
  const int64_t mean = Mean(sorted).count;
  const auto at = [&](double quantile) { return Quantile(sorted, quantile).count; };
  table.rows.push_back(
      {std::ssize(steps), std::to_string(variation.seed), step, mean, at(0.05), at(0.5), at(0.95),
       steps.back(),
       step > 0 ? Cell(static_cast<double>(mean) / static_cast<double>(step) - 1) : Cell()});
  return table;
}

Table FailureTable(int64_t ranks, const Goodput& goodput, double simulated) {
  const auto nanos = [](double seconds) { return std::llround(seconds * 1e9); };
  return {.key = std::string(kFailureTable),
          .title = "time of a long job with failures",
          .columns = {{"ranks", "ranks", Unit::kCount},
                      {"mtbf_ns", "between failures", Unit::kTime},
                      {"interval_ns", "between checkpoints", Unit::kTime},
                      {"useful_share", "useful", Unit::kShare},
                      {"checkpoint_share", "checkpoints", Unit::kShare},
                      {"lost_share", "lost", Unit::kShare},
                      {"simulated_share", "simulated", Unit::kShare}},
          .rows = {{ranks, nanos(goodput.mtbf), nanos(goodput.interval), goodput.useful,
                    goodput.checkpoints, goodput.lost, simulated}}};
}

}  // namespace etude
