#pragma once

#include <optional>
#include <string_view>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// Member of captures and profiles with the name of the clock of the recording machine. Ranks on one
// machine share one clock.
inline constexpr std::string_view kClockKey = "etude_clock";

// Returns the name as quoted JSON; "" if missing.
std::string_view MachineClockOf(const Trace& trace);

// Member of profiles with the origin of their times, in nanoseconds since 1970.
inline constexpr std::string_view kBaseTimeKey = "baseTimeNanoseconds";

// Returns the origin of the trace's times; nullopt if missing.
std::optional<Nanos> BaseTimeOf(const Trace& trace);

}  // namespace etude
