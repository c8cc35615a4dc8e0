#pragma once

#include <cstdint>
#include <vector>

#include "src/sim/engine/event_queue.h"
#include "src/sim/engine/short_queues.h"
#include "src/sim/engine/sim_input.h"
#include "src/sim/engine/sim_pool.h"
#include "src/sim/engine/tie_watch.h"

namespace etude {

enum class SimEventKind : uint8_t { kLocal, kArrival, kLinkFree, kReceived, kCores };
struct SimEvent {
  SimEventKind kind = SimEventKind::kLocal;
  SimIndex subject = 0;  // index of the tick, message, link or receipt; plan of the cores
  int64_t planned = 0;   // time of planning
  EventCause cause;
};

// Kind of an event that a rank plans for itself.
enum class LocalKind : uint8_t {
  kNodeDone,
  kHandled,
  kReduced,
  kStreamless,
  kWake,
  kCustomDone,
  kPlanDone,
  kBusSent,
  kBusCame,
  kBusReduced,
};
struct LocalEvent {
  LocalKind kind = LocalKind::kNodeDone;
  bool reduces = false;
  SimIndex subject = 0;       // node, stream, bus end, or action of PlanRuns
  SimIndex node = 0;          // in the stream's program
  SimIndex chain = kNoIndex;  // of the stream
  int64_t bytes = 0;
};

// Timeline of all events. Events that a rank plans for itself at one time form a tick, and run
// together at the place of the first of them.
class SimTimeline {
 public:
  SimTimeline(size_t classes, TieWatch& ties) : ties_(ties), first_tick_(classes, kNoIndex) {}

  int64_t now() const { return events_.now(); }
  bool empty() const { return events_.empty(); }
  uint64_t count() const { return events_.count(); }
  // Advances to the next event. Requires !empty().
  SimEvent Take() { return events_.Take(); }
  void Plan(int64_t time, SimEventKind kind, SimIndex subject) {
    events_.Plan(time,
                 {.kind = kind, .subject = subject, .planned = now(), .cause = ties_.cause()});
  }

  void PlanLocal(RankClassId rank_class, int64_t delay, const LocalEvent& event);
  RankClassId ClassOf(SimIndex tick) { return ticks_[tick].rank_class; }
  // Runs the events of the current tick in order. `act` may add events to this tick and make new
  // ticks.
  template <typename Act>
  void Run(SimIndex tick, Act act) {
    while (!ticks_[tick].queue.empty()) {
      const Local local = locals_.Pop(ticks_[tick].queue);
      ties_.BeginLocal(local.cause);
      act(local.event);
    }
    Remove(tick);
  }

 private:
  // Upper bound of any time, in ns; above kLongestSimulation.
  static constexpr int64_t kLongest = int64_t{1} << 57;

  struct Local {
    LocalEvent event;
    EventCause cause;
  };
  struct Tick {
    int64_t time = 0;
    RankClassId rank_class;
    SimIndex next = kNoIndex;  // next tick of the class
    ShortQueues<Local>::Queue queue;
  };

  void Remove(SimIndex tick) {
    SimIndex* place = &first_tick_[ticks_[tick].rank_class.index()];
    while (*place != tick) place = &ticks_[*place].next;
    *place = ticks_.Take(tick).next;
  }

  TieWatch& ties_;
  EventQueue<SimEvent> events_;
  ShortQueues<Local> locals_;
  SimPool<Tick> ticks_;
  std::vector<SimIndex> first_tick_;  // by class
};

}  // namespace etude
