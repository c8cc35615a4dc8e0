#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "src/sim/engine/sim_input.h"

namespace etude {

// What planned an event: the handling of an earlier one by a rank at one time.
struct EventCause {
  SimIndex instant = 0;
  SimIndex handler = 0;
};

// Where a rank stands for a class, the order in which it is told of what comes from several others
// at one time, and was sent at one time, is not known: it may differ between the ranks of the
// class. That does not matter as long as what it does then commutes: then all of them come to the
// same state, and only the order of what was planned meanwhile is unknown, which this keeps, too.
// Handlings say what they touch, and the watch whether two whose order is unknown do not commute.
class TieWatch {
 public:
  explicit TieWatch(const SimInput& input)
      : on_(input.by_class), states_(on_ ? input.class_count() : 0) {}

  // Whether classes of ranks are not enough to know what happens.
  bool ambiguous() const { return ambiguous_; }
  EventCause cause() const { return {now_instant_, handler_}; }

  // An event begins to be handled.
  struct Origin {
    int64_t planned = 0;  // when it was planned
    EventCause cause;     // and what by
    RankClassId source;   // who sent it; kNone: the rank planned it itself
    int64_t to = -1;      // to whom
  };
  void Begin(RankClassId rank_class, int64_t now, const Origin& origin) {
    if (on_) NoteBegin(rank_class, now, origin);
  }
  // The first of the next local events of a rank, which were planned together with others.
  void BeginTick(RankClassId rank_class, int64_t now, int64_t planned, EventCause cause) {
    if (on_) NoteBeginTick(rank_class, now, planned, cause);
  }
  void BeginLocal(EventCause cause) {
    if (on_) NoteBeginLocal(cause);
  }
  void EndTick() { in_tick_ = false; }

  // What is handled plans something for the rank itself, now.
  void PlansNow() {
    if (on_) NotePlansNow();
  }

  enum class StreamStep : uint8_t { kArrival, kReduction, kStep };
  void TouchStream(SimIndex stream, StreamStep step) {
    if (on_) NoteTouchStream(stream, step);
  }
  enum class Mail : uint8_t { kDelivered, kPostedByStream, kPostedByNode };
  void TouchMail(uint64_t key, Mail mail);
  enum class QueueStep : uint8_t { kLeave, kEnterAndStart, kEnter };
  void TouchQueue(SimIndex queue, QueueStep step);
  // What two streams ask of a bus, or a bus does, is in the order in which it happens.
  void TouchBus(RankClassId rank_class);
  // The last phase of a stream ends: streams of one set in one queue may change places.
  void EndStream(SimIndex set, SimIndex queue);
  void BeginCollective();

  static constexpr size_t kSlots = kNoSlot;  // in which a node at a time runs
  struct Slot {
    bool free = false;
    SimIndex ready = kNoIndex;  // the first node that could begin
  };
  struct Completion {
    std::array<Slot, kSlots> before;
    size_t freed = kSlots;                             // slot
    std::span<const SimIndex> children;                // nodes that wait for it
    std::vector<std::pair<size_t, SimIndex>> enabled;  // that wait for nothing else, with slots
  };
  void Complete(Completion completion);
  // A node without work is passed over.
  void Skip();

 private:
  enum class Kind : uint8_t { kStream, kMail, kQueue, kBus };
  using Ends = std::pair<SimIndex, SimIndex>;  // set and queue
  static constexpr Ends kNoEnds{kNoIndex, kNoIndex};

  // What has come that was planned at one time.
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
    bool at_once = false;  // it has planned for itself now
    bool skipped = false;
    uint32_t collectives = 0;  // begun
    bool left_queue = false;
    std::vector<Arrivals> arrivals;
    std::vector<Completed> completed;
  };
  // Handlings of a rank at a time that touch a thing in one way.
  struct Touched {
    uint64_t key = 0;
    SimIndex stamp = 0;
    SimIndex handler = 0;
    bool several = false;  // handlings
    Ends ends = kNoEnds;
  };

  // The same where it is on.
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
  // Where the key is, or would be.
  Touched& Find(uint64_t key);
  void Grow();
  bool Commutes(const State& state) const;
  static bool SlotCommutes(std::span<const Completed* const> batch, size_t slot);
  void CheckCollectives(const State& state);

  const bool on_;
  bool ambiguous_ = false;
  std::vector<State> states_;      // by class
  std::vector<bool> tied_{false};  // by instant: its handlings have no known order
  // What is handled.
  State* state_ = nullptr;
  SimIndex now_instant_ = 0;
  SimIndex handler_ = 0;
  int64_t planned_ = 0;
  Ends ends_ = kNoEnds;
  bool in_tick_ = false;
  std::vector<EventCause> locals_;  // of the tick: the first of each instant

  // Of the time that is now.
  int64_t stamp_time_ = -1;
  SimIndex stamp_ = 0;
  size_t used_ = 0;
  std::vector<Touched> touched_;  // by hash
};

}  // namespace etude
