#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/report/text/table.h"
#include "src/sim/result/account.h"

namespace etude {

inline constexpr std::string_view kMeasuredTable = "measured";  // key

// A job whose step was simulated, and if it was recorded also measured.
struct ComparedStep {
  std::string job;
  std::optional<int64_t> measured;  // ns; nullopt: unknown
  int64_t simulated = 0;            // ns
  SimTimes mean;                    // of a rank
};

// Compares a simulated step (`step`, ns) with those of other jobs, the first of which is itself.
Table MeasuredTable(const std::vector<ComparedStep>& jobs, int64_t step);

}  // namespace etude
