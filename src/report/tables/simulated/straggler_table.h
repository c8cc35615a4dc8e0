#pragma once

#include <cstdint>
#include <string_view>

#include "src/report/text/table.h"
#include "src/sim/stragglers/straggling.h"

namespace etude {

inline constexpr std::string_view kStragglerTable = "stragglers";  // key
inline constexpr std::string_view kRemedyTable = "remedies";       // key

// `step`: of the job with its own times, ns.
Table StragglerTable(const StragglerStudy& study, int64_t step);
// Likewise.
Table RemedyTable(const StragglerStudy& study, int64_t step);

}  // namespace etude
