#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "src/base/units.h"

namespace etude {

// Cores that this process may use at once: those of its affinity, at most its control group's share
// of time. 0 if the system does not say.
double CoreLimit();

// How long the cores that this process may use were at work so far, and how long of it for this
// process with its children that have ended.
struct CoreUse {
  Nanos at;    // when, by a steady clock
  Nanos busy;  // all cores together, whoever used them
  Nanos own;

  // nullopt if the system does not say.
  static std::optional<CoreUse> Now();
};

// How many cores, on average, other programs used between two looks. 0 or more.
double CoresOfOthers(const CoreUse& before, const CoreUse& after);

// Clock ticks that the cores for which `counts` is true were at work, by the text of /proc/stat;
// nullopt if it has none of them.
std::optional<int64_t> BusyTicks(std::string_view text,
                                 const std::function<bool(int64_t core)>& counts);
// Cores that a control group's time is worth, by the text of its cpu.max ("150000 100000");
// nullopt if it is not limited.
std::optional<double> QuotaCores(std::string_view text);

}  // namespace etude
