#pragma once

#include "src/base/units.h"
#include "src/trace/value.h"

namespace etude {

// Gloo's threads wake who waits for a collective before they leave its label: it may end so much
// later than what waited begins, or more where there are fewer processors than threads.
inline constexpr Nanos kGlooSlack{100'000};

// That a node of a recorded run waited for another, found from what the trace says of
// synchronisation and not stated by it as a dependency.
struct RecordedWait {
  NodeId node;
  NodeId before;  // it was over; a label of Gloo's may not have ended yet
  // A call that ended only after `before` had, and did nothing but wait for this long; else `node`
  // began after it.
  bool in_call = false;
  Nanos waited;

  friend bool operator==(const RecordedWait&, const RecordedWait&) = default;
};

}  // namespace etude
