#pragma once

#include <string>
#include <string_view>

#include "src/trace/trace.h"

namespace etude {

// Returns the readable name of a lane's thread: "thread 17", unless the file's own name already
// begins so; `unknown` if it has none.
std::string ThreadText(const Trace& trace, const Lane& lane, std::string_view unknown);

// Returns the readable name of a process: "process 17" for a number, else its name.
std::string ProcessText(std::string_view process);

// Returns the stream of a lane: "device 0 stream 7", with " of PROCESS" if the trace names its
// process, as traces of several processes do.
std::string StreamText(const Trace& trace, const Lane& lane);

}  // namespace etude
