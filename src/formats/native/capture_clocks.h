#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {

// Time on a thread, in ns: by the clock of the process, and by the thread's own clock, which stops
// while the recorder works on the thread.
struct Moment {
  int64_t time = 0;
  int64_t own = 0;
};

// Label of a backend's thread, with the thread that issued it.
struct AskedLabel {
  NodeId node;
  LaneId lane;
  LaneId asker;
  Moment begin;
  Moment end;
};

// Aligns the own clocks of threads that issue communications with those of the threads that perform
// them (Gloo's), which the recorder delays differently:
//
// * a label, with its contents, begins at its time on the issuer's clock, and keeps its duration;
// * an issuer that computed nothing while a label ended may have waited for it. Then the recorder
//   delayed it less, by as much as its wait was shorter: its clock continues from the label's end
//   at the earliest.
//
// A clock never gets ahead of the process's clock. Not thread-safe.
class CaptureClocks {
 public:
  // Adds the begin or end of something on a thread that issues communications. `computes`: from now
  // on the thread is in an operator that does not wait for others. Must be in order of time; other
  // moments are ignored.
  void Add(LaneId lane, Moment moment, bool computes);

  // Moves the builder's nodes to their aligned times. To be called once, after all moments.
  void Settle(std::vector<AskedLabel> labels, TraceBuilder& builder);

 private:
  struct Event {
    Moment moment;
    bool computes = false;
  };
  // From here on, a thread's own clock is this much later.
  struct Shift {
    int64_t from = 0;
    int64_t by = 0;
  };
  struct Thread {
    std::vector<Event> events;
    std::vector<Shift> shifts;  // in order of time
    int64_t busy_until = 0;     // backend's thread: end of its last label
  };

  static int64_t OwnAt(const Thread& thread, int64_t time);
  static void AddShift(Thread& thread, int64_t from, int64_t by);
  static int64_t LastShift(const Thread& thread);
  void Begin(const AskedLabel& label);
  void End(const AskedLabel& label);
  void Move(NodeId node, TraceBuilder& builder) const;

  std::unordered_map<LaneId, Thread> threads_;
};

}  // namespace etude
