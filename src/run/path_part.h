#pragma once

#include <cstdint>
#include <string_view>

namespace etude {

// What a stretch of the critical path, or of the time beside it, was spent with.
enum class PathPart : uint8_t {
  kHost,           // an operator or a call of the runtime ran
  kCompute,        // a kernel
  kCommunication,  // a collective, send or receive, on the host or a device
  kCopy,           // a copy or a fill
  kLaunchDelay,    // from the call that launched work to its beginning: the stream was empty
  kQueueWait,   // from the end of what work waited for, on its stream or another, to its beginning
  kSyncReturn,  // from the end of what a call waited for to the end of the call
  // Not on the path:
  kHostWait,  // a thread did nothing but wait for device work that the path does not go through
  kIdle,      // between nodes of a thread, or of two threads, nothing was recorded
  kOutside,   // before the path begins and after it ends
};
std::string_view Name(PathPart part);  // stable: appears in --json
// Whether the time of such a part is on the path.
bool IsOnPath(PathPart part);

}  // namespace etude
