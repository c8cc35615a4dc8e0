#include "src/report/tables/simulated/straggler_table.h"

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
    return ShareCell(Nanos{part}, Nanos{whole});
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
    table.rows.push_back({one.what, one.step ? Cell(*one.step) : Cell(),
                          one.step ? ShareCell(Nanos{step - *one.step}, Nanos{step}) : Cell(),
                          one.step ? "modelled" : "unknown", one.basis});
  }
  return table;
}

}  // namespace etude
