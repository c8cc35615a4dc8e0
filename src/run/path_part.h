#pragma once

#include <cstdint>
#include <string_view>

namespace etude {

// Use of a stretch of time on the critical path or beside it.
enum class PathPart : uint8_t {
  kHost,           // operator or runtime call
  kCompute,        // kernel
  kCommunication,  // collective, send or receive, on the host or a device
  kCopy,           // copy or fill
  kLaunchDelay,    // from the launch of work on an empty stream to its begin
  kQueueWait,      // from the end of a predecessor of work, on its stream or another, to its begin
  kSyncReturn,     // from the end of the awaited work to the end of the waiting call
  // Not on the path:
  kHostWait,  // a thread only waited for device work that is not on the path
  kIdle,      // nothing recorded between nodes of one or two threads
  kOutside,   // before the path begins and after it ends
};
std::string_view Name(PathPart part);  // stable: used in --json
// Returns true if time of this part is on the path.
bool IsOnPath(PathPart part);

}  // namespace etude
