#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/base/units.h"
#include "src/run/recorded_run.h"
#include "src/trace/trace.h"

namespace etude {

// A gap on a device shorter than this, before work that had been asked for, is what it takes to
// begin the next kernel. The threshold of HolisticTraceAnalysis, which calls it 30 nanoseconds but
// compares it with microseconds.
inline constexpr Nanos kKernelGap{30'000};

// Why a device was idle, each the sum of the gaps of that reason.
struct IdleReasons {
  Nanos host_wait;    // the work that ended the gap had not been asked for when the gap began
  Nanos kernel_wait;  // it had, and the gap is shorter than kKernelGap
  Nanos other;        // it had, or the trace does not say when
};

// Where the time of `window` went. Each is the length of a union: what two lanes do at once counts
// once. window = compute + exposed_communication + exposed_copies + idle.
struct TimeShares {
  Nanos window;
  Nanos compute;
  Nanos communication;
  Nanos exposed_communication;  // without compute at the same time
  Nanos copies;
  Nanos exposed_copies;                // without compute or communication at the same time
  Nanos idle;                          // nothing of the three
  std::optional<IdleReasons> reasons;  // of the idle time; devices only
};

// What devices did and when they did nothing; of a trace without device work, the same of the
// threads of the host: an operator computes while no communication runs inside it and it does not
// wait for another thread.
struct Breakdown {
  struct Step {
    std::string_view name;  // of its mark; points into the trace
    TimeShares times;
  };
  // Of a stream of a device; its window is from its first to its last work.
  struct Stream {
    std::string_view process;  // of merged traces; else ""
    int32_t device = -1;
    int32_t stream = -1;
    uint64_t count = 0;
    TimeShares times;
  };

  bool on_device = false;           // else on the host
  std::optional<TimeShares> whole;  // first start to last end of the work; nullopt: none has times
  // By time. Of the host each is the time of its mark; on devices it lasts until the work that was
  // asked for within its mark is done, and the next one begins then.
  std::vector<Step> steps;
  std::vector<Stream> streams;  // by process, device and stream; devices only
  uint64_t untimed = 0;         // pieces of work without start or duration: not counted
  uint64_t unlaunched = 0;      // of device work: when it was asked for is not known
};

// O(n log n).
Breakdown BreakDown(const RecordedRun& run);

}  // namespace etude
