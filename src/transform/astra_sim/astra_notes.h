#pragma once

#include <string_view>

#include "src/transform/runnable/runnable_notes.h"

namespace etude {

// Returns the reason in ASTRA-sim, to be appended to the text of the note; may be "".
constexpr std::string_view AstraReason(RunnableNote note) {
  switch (note) {
    case RunnableNote::kMemory: return ", for which ASTRA-sim prints no statistics";
    case RunnableNote::kOneRank: return ", which hang ASTRA-sim";
    case RunnableNote::kNoSize: return ", for which ASTRA-sim invents one";
    case RunnableNote::kReplayed: return ", which ASTRA-sim does not simulate";
    case RunnableNote::kSizeRaised: return ": all ranks must have the same";
    case RunnableNote::kSmallGather: return ": with fewer bytes than chunks ASTRA-sim never ends";
    case RunnableNote::kRenamedGroup: return ": ASTRA-sim requires them";
    case RunnableNote::kEmptyRank: return ": ASTRA-sim aborts without one";
    case RunnableNote::kFirstRaised: return ": ASTRA-sim aborts if one takes no time";
    case RunnableNote::kHostWork:
    case RunnableNote::kIdleHost:
    case RunnableNote::kNoWork:
    case RunnableNote::kNoPeer:
    case RunnableNote::kUnmatched:
    case RunnableNote::kUnknownType:
    case RunnableNote::kUnknownGroup:
    case RunnableNote::kInconsistent:
    case RunnableNote::kCircular:
    case RunnableNote::kBarrier:
    case RunnableNote::kUnknownRoot:
    case RunnableNote::kUnknownTime:
    case RunnableNote::kNoShapes:
    case RunnableNote::kNoOps: break;
  }
  return "";
}

}  // namespace etude
