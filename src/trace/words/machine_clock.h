#pragma once

#include <optional>
#include <string_view>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// The member of captures and profiles that names the clock of the machine they were recorded on:
// what ranks ran on one machine has times by one clock.
inline constexpr std::string_view kClockKey = "etude_clock";

// The name as JSON has it, in quotes; "" where the recorder did not say it.
std::string_view MachineClockOf(const Trace& trace);

// The member of profiles that says what their times count from, in nanoseconds since 1970.
inline constexpr std::string_view kBaseTimeKey = "baseTimeNanoseconds";

// What the trace's times count from; nullopt if it does not say.
std::optional<Nanos> BaseTimeOf(const Trace& trace);

}  // namespace etude
