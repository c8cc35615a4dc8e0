#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "src/sim/engine/sim_input.h"

namespace etude {

// Origin of an event: the handling during which it was planned.
struct EventCause {
  SimIndex instant = 0;
  SimIndex handler = 0;
};

// Detects results that depend on an unknown order of events. If one rank represents a class, the
// order of simultaneous events from several other ranks (sent at the same time) may differ between
// the ranks of the class. This is harmless as long as their handlings commute: then all ranks reach
// the same state, and only the order of the events planned meanwhile is unknown, which is tracked,
// too. Handlers report what they touch, and the watch checks that handlings of unknown order
// commute.
class TieWatch {
 public:
  explicit TieWatch(const SimInput& input)
      : on_(input.by_class), states_(on_ ? 2 * input.class_count() : 0) {}

  // Returns whether classes do not determine the result.
  bool ambiguous() const { return ambiguous_; }
  EventCause cause() const { return {now_instant_, handler_}; }

  // Number under which the handlings of a switch's link to a rank are watched.
  RankClassId PortOf(RankClassId rank_class) const {
    return RankClassId(static_cast<uint32_t>(rank_class.index() + states_.size() / 2));
  }

  // Begins the handling of an event.
  struct Origin {
    int64_t planned = 0;  // time of planning
    EventCause cause;     // planned by
    RankClassId source;   // sender; kNone: the rank itself
    int64_t to = -1;      // receiving rank
  };
  void Begin(RankClassId rank_class, int64_t now, const Origin& origin) {
    if (on_) NoteBegin(rank_class, now, origin);
  }
  // Begins a tick: the local events of a rank that run together.
  void BeginTick(RankClassId rank_class, int64_t now, int64_t planned, EventCause cause) {
    if (on_) NoteBeginTick(rank_class, now, planned, cause);
  }
  void BeginLocal(EventCause cause) {
    if (on_) NoteBeginLocal(cause);
  }
  void EndTick() { in_tick_ = false; }
  // Begins a step of a network whose events are in no known order.
  void BeginInNetwork() {
    if (!on_) return;
    now_instant_ = kNetworkInstant;
    handler_ = network_steps_++;
  }

  // The current handling plans an event for the rank itself at the current time.
  void PlansNow() {
    if (on_) NotePlansNow();
  }

  // Likewise, also within a tick: the event comes after the tick.
  void PlansAfter() {
    if (!on_) return;
    state_->at_once = true;
    ambiguous_ = ambiguous_ || tied();
  }

  enum class StreamStep : uint8_t { kArrival, kReduction, kStep };
  void TouchStream(SimIndex stream, StreamStep step) {
    if (on_) NoteTouchStream(stream, step);
  }
  enum class Mail : uint8_t { kDelivered, kPostedByStream, kPostedByNode };
  void TouchMail(uint64_t key, Mail mail);
  enum class QueueStep : uint8_t { kLeave, kEnterAndStart, kEnter };
  void TouchQueue(SimIndex queue, QueueStep step);
  // Messages enter a link with a queue, and it becomes free.
  void TouchLink(SimIndex link);
  // Ends the last phase of a stream. Streams of one set in one queue are interchangeable.
  void EndStream(SimIndex set, SimIndex queue);
  void BeginCollective();

  static constexpr size_t kSlots = kNoSlot;  // slots that run one node at a time
  struct Slot {
    bool free = false;
    SimIndex ready = kNoIndex;  // first node that is ready
  };
  struct Completion {
    std::array<Slot, kSlots> before;
    size_t freed = kSlots;               // slot
    std::span<const SimIndex> children;  // nodes that depend on the completed one
    std::vector<std::pair<size_t, SimIndex>>
        enabled;  // nodes without other unfinished dependencies, with slots
  };
  void Complete(Completion completion);
  // Skips a node without work.
  void Skip();

 private:
  enum class Kind : uint8_t { kStream, kMail, kQueue, kLink };
  using Ends = std::pair<SimIndex, SimIndex>;  // set and queue
  static constexpr Ends kNoEnds{kNoIndex, kNoIndex};

  // Events of one rank and time that were planned at the same time.
  struct Arrivals {
    Origin first;
    bool one_source = true;
    bool one_handler = true;
  };
  struct Completed {
    Completion completion;
    SimIndex handler = 0;
    int64_t planned = 0;
    Ends ends = kNoEnds;
  };
  struct State {
    int64_t time = -1;
    SimIndex instant = 0;
    SimIndex handlers = 0;
    bool at_once = false;  // planned something for itself at the current time
    bool skipped = false;
    uint32_t collectives = 0;  // begun
    bool left_queue = false;
    std::vector<Arrivals> arrivals;
    std::vector<Completed> completed;
  };
  // Handlings of a rank at one time that touch an object in the same way.
  struct Touched {
    uint64_t key = 0;
    SimIndex stamp = 0;
    SimIndex handler = 0;
    bool several = false;  // handlings
    Ends ends = kNoEnds;
  };

  // Implementations of the functions above, if on_.
  void NoteBegin(RankClassId rank_class, int64_t now, const Origin& origin);
  void NoteBeginTick(RankClassId rank_class, int64_t now, int64_t planned, EventCause cause);
  void NoteBeginLocal(EventCause cause);
  void NotePlansNow();
  void NoteTouchStream(SimIndex stream, StreamStep step);
  State& Enter(RankClassId rank_class, int64_t now);
  void NewHandler(int64_t planned);
  void Tie();
  bool tied() const { return tied_[now_instant_]; }
  template <typename Clash>
  void Touch(Kind kind, uint64_t id, uint8_t way, uint8_t ways, Clash clash);
  // Returns the entry of the key, or its free place.
  Touched& Find(uint64_t key);
  void Grow();
  bool Commutes(const State& state) const;
  static bool SlotCommutes(std::span<const Completed* const> batch, size_t slot);
  void CheckCollectives(const State& state);

  static constexpr SimIndex kNetworkInstant = 1;

  const bool on_;
  bool ambiguous_ = false;
  std::vector<State> states_;  // by class, and by class for the links from a switch
  // By instant: the order of its handlings is unknown. The first is none, the second the network's.
  std::vector<bool> tied_{false, true};
  SimIndex network_steps_ = 0;
  // The current handling.
  State* state_ = nullptr;
  SimIndex now_instant_ = 0;
  SimIndex handler_ = 0;
  int64_t planned_ = 0;
  Ends ends_ = kNoEnds;
  bool in_tick_ = false;
  std::vector<EventCause> locals_;  // of the tick: first cause of each instant

  // The current time.
  int64_t stamp_time_ = -1;
  SimIndex stamp_ = 0;
  size_t used_ = 0;
  std::vector<Touched> touched_;  // by hash
};

}  // namespace etude
