#pragma once

#include <string>
#include <string_view>

#include "src/trace/trace.h"

namespace etude {

// The thread of a lane as people read it: "thread 17", where the file's own name for it does not
// begin so already; `unknown` where there is none.
std::string ThreadText(const Trace& trace, const Lane& lane, std::string_view unknown);

// A process as people read it: "process 17" for a number, else as it is called.
std::string ProcessText(std::string_view process);

// The stream of a lane: "device 0 stream 7", with " of PROCESS" where the trace names whose it is,
// as traces of several processes do.
std::string StreamText(const Trace& trace, const Lane& lane);

}  // namespace etude
