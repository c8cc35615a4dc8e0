#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "src/base/units.h"

namespace etude {

// Returns the number of cores this process may use: those of its CPU affinity, at most its cgroup's
// CPU quota. 0 if unknown.
double CoreLimit();

// Busy time so far of the cores that this process may use, and the part of it that this process and
// its terminated children used.
struct CoreUse {
  Nanos at;    // time of measurement, by a steady clock
  Nanos busy;  // all cores and all processes
  Nanos own;

  // Returns the current values; nullopt if the system does not provide them.
  static std::optional<CoreUse> Now();
};

// Returns the average number of cores that other programs used between two measurements, >= 0.
double CoresOfOthers(const CoreUse& before, const CoreUse& after);

// Parses /proc/stat and returns the busy clock ticks of the cores for which `counts` is true;
// nullopt if the text has none of them.
std::optional<int64_t> BusyTicks(std::string_view text,
                                 const std::function<bool(int64_t core)>& counts);
// Parses a cgroup's cpu.max ("150000 100000") and returns its quota in cores; nullopt if unlimited.
std::optional<double> QuotaCores(std::string_view text);

}  // namespace etude
