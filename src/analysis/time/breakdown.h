#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/base/units.h"
#include "src/run/recorded_run.h"
#include "src/trace/trace.h"

namespace etude {

// Gaps on a device shorter than this, before work that was already launched, are the overhead of
// starting the next kernel. Threshold of HolisticTraceAnalysis, which calls it 30 nanoseconds but
// compares it with microseconds.
inline constexpr Nanos kKernelGap{30'000};

// Idle time of a device by reason.
struct IdleReasons {
  Nanos host_wait;    // the work after the gap was launched after the gap began
  Nanos kernel_wait;  // it was launched before, and the gap is shorter than kKernelGap
  Nanos other;        // longer gaps, or an unknown launch time
};

// Use of the time in `window`. Each value is the length of a union: concurrent activity of two
// lanes counts once. window = compute + exposed_communication + exposed_copies + idle.
struct TimeShares {
  Nanos window;
  Nanos compute;
  Nanos communication;
  Nanos exposed_communication;  // without concurrent compute
  Nanos copies;
  Nanos exposed_copies;                // without concurrent compute or communication
  Nanos idle;                          // none of the three
  std::optional<IdleReasons> reasons;  // of the idle time; devices only
};

// Activity and idle time of devices or, in a trace without device work, of the host's threads: an
// operator computes while no communication runs inside it and it does not wait for another thread.
struct Breakdown {
  struct Step {
    std::string_view name;  // name of its mark; points into the trace
    TimeShares times;
  };
  // A stream of a device; its window is from its first to its last work.
  struct Stream {
    std::string_view process;  // in merged traces; else ""
    int32_t device = -1;
    int32_t stream = -1;
    uint64_t count = 0;
    TimeShares times;
  };

  bool on_device = false;           // else on the host
  std::optional<TimeShares> whole;  // first start to last end of the work; nullopt: no times
  // In order of time. On the host a step is the time of its mark; on devices it lasts until the
  // work launched within its mark is done, and the next one begins then.
  std::vector<Step> steps;
  std::vector<Stream> streams;  // by process, device and stream; devices only
  uint64_t untimed = 0;         // work without start or duration: not counted
  uint64_t unlaunched = 0;      // device work with an unknown launch time
};

// Computes the breakdown of a run. O(n log n).
Breakdown BreakDown(const RecordedRun& run);

}  // namespace etude
