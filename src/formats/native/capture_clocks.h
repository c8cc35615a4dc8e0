#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {

// A moment on a thread, in nanoseconds: by the clock of the process and by the thread's own, which
// stands still while the recorder works on the thread.
struct Moment {
  int64_t time = 0;
  int64_t own = 0;
};

// A label of a backend's thread with the thread that asked for it.
struct AskedLabel {
  NodeId node;
  LaneId lane;
  LaneId asker;
  Moment begin;
  Moment end;
};

// Brings the own clocks of threads together that ask for communications and of those that work for
// them (Gloo's), which the recorder holds up differently:
//
// * a label, with all inside of it, begins when its asker's clock says so, and lasts as long as
//   it did;
// * an asker that computed nothing while a label ended may have waited for it. Then the recorder
//   held it up as much less as it waited less: its clock goes on from the label's end at the
//   earliest.
//
// A clock never gets ahead of the process's. Not thread-safe.
class CaptureClocks {
 public:
  // Something begins or ends on a thread that asks for communications; `computes`: from now on the
  // thread is in an operator that does not wait for others. In order of time; what is not counts as
  // not seen.
  void Add(LaneId lane, Moment moment, bool computes);

  // Moves the builder's nodes to where they lay. Once, after all moments.
  void Settle(std::vector<AskedLabel> labels, TraceBuilder& builder);

 private:
  struct Event {
    Moment moment;
    bool computes = false;
  };
  // From here on a thread's own clock is this much later.
  struct Shift {
    int64_t from = 0;
    int64_t by = 0;
  };
  struct Thread {
    std::vector<Event> events;
    std::vector<Shift> shifts;  // in order of time
    int64_t busy_until = 0;     // a backend's: with its last label
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
