#include "src/report/tables/simulated/sensitivity_table.h"

#include <algorithm>
#include <functional>
#include <string>

namespace etude {

Table SensitivityTable(std::vector<Sensitivity> found, int64_t step) {
  Table table{.key = std::string(kSensitivityTable),
              .title = "step with 1 % more of one thing",
              .columns = {{"what", "1 % faster", Unit::kText},
                          {"key", "key", Unit::kText},
                          {"step_ns", "step", Unit::kTime},
                          {"gain_ns", "gain", Unit::kTime},
                          {"gain_share", "of the step", Unit::kShare}},
              .rows = {}};
  std::ranges::stable_sort(found, {}, &Sensitivity::time);
  for (const Sensitivity& one : found) {
    const int64_t gain = step - one.time;
    table.rows.push_back(
        {one.what, one.key, one.time, gain,
         step > 0 ? Cell(static_cast<double>(gain) / static_cast<double>(step)) : Cell()});
  }
  return table;
}

}  // namespace etude
