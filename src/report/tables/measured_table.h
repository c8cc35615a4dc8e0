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

// A job whose step was simulated, measured, or both.
struct ComparedStep {
  std::string job;
  std::optional<int64_t> measured;   // ns; nullopt: unknown
  std::optional<int64_t> simulated;  // ns; nullopt: it was not simulated
  SimTimes mean;                     // of a rank, if it was
  bool is_compared = true;           // `measured` is that of the simulated job
};

// Compares a simulated step (`step`, ns; nullopt: unknown) with those of other jobs, the first of
// which is itself.
Table MeasuredTable(const std::vector<ComparedStep>& jobs, std::optional<int64_t> step);

}  // namespace etude
