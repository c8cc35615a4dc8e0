#pragma once

#include <cstdint>
#include <string_view>

#include "src/report/text/table.h"
#include "src/sim/result/straggling.h"

namespace etude {

inline constexpr std::string_view kStragglerTable = "stragglers";  // key

// `step`: of the job with its own times, ns.
Table StragglerTable(const StragglerStudy& study, int64_t step);

}  // namespace etude
