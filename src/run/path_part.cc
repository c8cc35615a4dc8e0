#include "src/run/path_part.h"

namespace etude {

std::string_view Name(PathPart part) {
  switch (part) {
    case PathPart::kHost: return "host";
    case PathPart::kCompute: return "compute";
    case PathPart::kCommunication: return "communication";
    case PathPart::kCopy: return "copy";
    case PathPart::kLaunchDelay: return "launch delay";
    case PathPart::kQueueWait: return "queue wait";
    case PathPart::kSyncReturn: return "sync return";
    case PathPart::kHostWait: return "host wait";
    case PathPart::kIdle: return "idle";
    case PathPart::kOutside: return "outside";
  }
  return "outside";
}

bool IsOnPath(PathPart part) { return part < PathPart::kHostWait; }

}  // namespace etude
