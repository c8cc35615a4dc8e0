#include "src/report/tables/measured_table.h"

namespace etude {
namespace {

// Returns by which share `found` is more than `expected`; an empty cell if that is unknown.
Cell Excess(int64_t found, std::optional<int64_t> expected) {
  if (!expected || *expected <= 0) return {};
  return static_cast<double>(found) / static_cast<double>(*expected) - 1;
}

}  // namespace

Table MeasuredTable(const std::vector<ComparedStep>& jobs, int64_t step) {
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
  for (const ComparedStep& one : jobs) {
    const bool is_itself = &one == &jobs.front();
    table.rows.push_back({one.job, one.measured ? Cell(*one.measured) : Cell(), one.simulated,
                          Excess(one.simulated, one.measured),
                          is_itself ? Cell() : Excess(step, one.measured), one.mean.compute,
                          one.mean.communication, one.mean.exposed_communication, one.mean.idle()});
  }
  return table;
}

}  // namespace etude
