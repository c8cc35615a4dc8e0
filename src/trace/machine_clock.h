#pragma once

#include <string_view>

#include "src/trace/trace.h"

namespace etude {

// The member of captures and profiles that names the clock of the machine they were recorded on:
// what ranks ran on one machine has times by one clock.
inline constexpr std::string_view kClockKey = "etude_clock";

// The name as JSON has it, in quotes; "" where the recorder did not say it.
std::string_view MachineClockOf(const Trace& trace);

}  // namespace etude
