#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/report/text/table.h"
#include "src/sim/variants/sensitivity.h"

namespace etude {

inline constexpr std::string_view kSensitivityTable = "sensitivity";  // key

// `step`: of the machine itself, ns. Rows by gain, descending.
Table SensitivityTable(std::vector<Sensitivity> found, int64_t step);

}  // namespace etude
