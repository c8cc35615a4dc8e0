#include "src/report/tables/measured_table.h"

namespace etude {
namespace {

// Returns by which share `found` is more than `expected`; an empty cell if that is unknown.
Cell Excess(std::optional<int64_t> found, std::optional<int64_t> expected) {
  if (!found || !expected || *expected <= 0) return {};
  return static_cast<double>(*found) / static_cast<double>(*expected) - 1;
}

}  // namespace

Table MeasuredTable(const std::vector<ComparedStep>& jobs, std::optional<int64_t> step) {
  Table table{.key = std::string(kMeasuredTable),
              .title = "simulated and measured steps",
              .columns = {{"job", "job", Unit::kText},
                          {"measured_ns", "measured", Unit::kTime},
                          {"simulated_ns", "simulated", Unit::kTime},
                          {"error", "error", Unit::kShare},
                          {"error_of_job", "error of this job", Unit::kShare},
                          {"compute_ns", "compute", Unit::kTime},
                          {"communication_ns", "comm", Unit::kTime},
                          {"exposed_communication_ns", "exposed", Unit::kTime},
                          {"idle_ns", "idle", Unit::kTime}},
              .rows = {}};
  const auto cell = [](const std::optional<int64_t>& time) { return time ? Cell(*time) : Cell(); };
  for (const ComparedStep& one : jobs) {
    const bool is_other = &one != &jobs.front() && one.is_compared;
    const auto mean = [&](int64_t time) { return one.simulated ? Cell(time) : Cell(); };
    table.rows.push_back({one.job, cell(one.measured), cell(one.simulated),
                          Excess(one.simulated, one.measured),
                          is_other ? Excess(step, one.measured) : Cell(), mean(one.mean.compute),
                          mean(one.mean.communication), mean(one.mean.exposed_communication),
                          mean(one.mean.idle())});
  }
  return table;
}

}  // namespace etude
