#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/formats/fuzz_support.h"
#include "src/sim/sweep/sweep_point.h"
#include "src/sim/sweep/sweep_result.h"
#include "src/sim/sweep/sweep_spec.h"

namespace {

// Returns whether a setting names a file, which a fuzzer must not open.
bool NamesFile(const etude::SweepSetting& setting) {
  return (setting.path.size() == 1 && setting.path[0] != "straggler" &&
          setting.path[0] != "slow_link" && setting.path[0] != "capacity") ||
         setting.path.back().ends_with("custom");
}

bool NamesFiles(const etude::SweepSpec& spec) {
  return std::ranges::any_of(spec.base, NamesFile) ||
         std::ranges::any_of(spec.axes, [](const etude::SweepAxis& axis) {
           return std::ranges::any_of(axis.choices, [](const etude::SweepChoice& choice) {
             return std::ranges::any_of(choice.settings, NamesFile);
           });
         });
}

}  // namespace

// Fuzzes a spec of `etude sweep` and the file of a point.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = etude::fuzz::Bytes(data, size);
  (void)etude::ReadSweepFile(text, "{}");
  const auto spec = etude::ParseSweep(text, "fuzz");
  if (!spec) return 0;
  if (spec->point_count() == 0) __builtin_trap();
  if (NamesFiles(*spec)) return 0;
  etude::SweepPlanner planner(*spec, "fuzz", {});
  const auto point = planner.PointAt(spec->point_count() - 1);
  if (!point) return 0;
  (void)etude::MachineOf(*point);
  const std::string identity = etude::SweepIdentity(*point, "", "");
  const etude::SweepOutcome outcome{.state = etude::SweepOutcome::State::kDone,
                                    .why = "",
                                    .times = etude::SweepTimes{},
                                    .notes = {}};
  if (etude::ReadSweepFile(etude::SweepFileText(identity, outcome), identity) != outcome) {
    __builtin_trap();
  }
  return 0;
}
