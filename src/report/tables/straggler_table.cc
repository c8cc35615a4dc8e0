#include "src/report/tables/straggler_table.h"

#include <string>

namespace etude {

Table StragglerTable(const StragglerStudy& study, int64_t step) {
  Table table{.key = std::string(kStragglerTable),
              .title = "step with the times of ranks that do the same",
              .columns = {{"kind", "what", Unit::kText},
                          {"what", "which", Unit::kText},
                          {"alone_ns", "only it differs", Unit::kTime},
                          {"slowdown_share", "slow-down", Unit::kShare},
                          {"mended_ns", "only it is ideal", Unit::kTime},
                          {"gain_share", "gain", Unit::kShare}},
              .rows = {}};
  const auto share = [](int64_t part, int64_t whole) {
    return whole > 0 ? Cell(static_cast<double>(part) / static_cast<double>(whole)) : Cell();
  };
  const auto add = [&](const char* kind, const std::string& what, int64_t alone, int64_t mended) {
    table.rows.push_back({kind, what, alone, share(alone - study.ideal, study.ideal), mended,
                          share(step - mended, step)});
  };
  add("all", "", step, study.ideal);
  for (const Straggling& one : study.ranks) add("rank", one.what, one.alone, one.mended);
  for (const Straggling& one : study.stages) add("stage", one.what, one.alone, one.mended);
  for (const Straggling& one : study.operators) add("operator", one.what, one.alone, one.mended);
  return table;
}

Table RemedyTable(const StragglerStudy& study, int64_t step) {
  Table table{.key = std::string(kRemedyTable),
              .title = "step with remedies for differences between ranks",
              .columns = {{"remedy", "remedy", Unit::kText},
                          {"step_ns", "step", Unit::kTime},
                          {"gain_share", "gain", Unit::kShare},
                          {"certainty", "certainty", Unit::kText},
                          {"basis", "basis", Unit::kText}},
              .rows = {}};
  for (const Remedy& one : study.remedies) {
    const bool has_gain = one.step && step > 0;
    table.rows.push_back(
        {one.what, one.step ? Cell(*one.step) : Cell(),
         has_gain ? Cell(static_cast<double>(step - *one.step) / static_cast<double>(step))
                  : Cell(),
         one.step ? "modelled" : "unknown", one.basis});
  }
  return table;
}

}  // namespace etude
