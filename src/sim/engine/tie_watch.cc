#include "src/sim/engine/tie_watch.h"

#include <algorithm>

#include "src/base/container/hash.h"

namespace etude {
namespace {

constexpr size_t kFirstTouched = 64;
constexpr size_t kMostCompleted = 64;  // at one time; beyond it commutation is not proved

}  // namespace

TieWatch::State& TieWatch::Enter(RankClassId rank_class, int64_t now) {
  if (stamp_time_ != now) {
    stamp_time_ = now;
    ++stamp_;
    used_ = 0;
  }
  State& state = states_[rank_class.index()];
  if (state.time != now) {
    state.time = now;
    state.instant = static_cast<SimIndex>(tied_.size());
    tied_.push_back(false);
    state.handlers = 0;
    state.at_once = state.skipped = state.left_queue = false;
    state.collectives = 0;
    state.arrivals.clear();
    state.completed.clear();
  }
  state_ = &state;
  now_instant_ = state.instant;
  return state;
}

void TieWatch::NewHandler(int64_t planned) {
  handler_ = state_->handlers++;
  planned_ = planned;
  ends_ = kNoEnds;
}

void TieWatch::Tie() {
  tied_[now_instant_] = true;
  ambiguous_ = ambiguous_ || state_->at_once;
}

void TieWatch::NoteBegin(RankClassId rank_class, int64_t now, const Origin& origin) {
  State& state = Enter(rank_class, now);
  in_tick_ = false;
  NewHandler(origin.planned);
  // An event that takes no time arrives while its sender is active.
  const bool by_network = origin.cause.instant == kNetworkInstant;
  if (origin.source && origin.planned == now && !by_network) PlansNow();
  const auto others = std::ranges::find(state.arrivals, origin.planned,
                                        [](const Arrivals& one) { return one.first.planned; });
  if (others == state.arrivals.end()) {
    state.arrivals.push_back({.first = origin});
    return;
  }
  const Origin& first = others->first;
  others->one_source = others->one_source && first.source == origin.source && first.to == origin.to;
  others->one_handler = others->one_handler && first.cause.handler == origin.cause.handler;
  if (!others->one_source || (tied_[origin.cause.instant] && !others->one_handler)) Tie();
}

void TieWatch::NoteBeginTick(RankClassId rank_class, int64_t now, int64_t planned,
                             EventCause cause) {
  // Several handlings may have planned this tick.
  Begin(rank_class, now, {.planned = planned, .cause = {cause.instant, kNoIndex}});
  in_tick_ = true;
  locals_.clear();
}

void TieWatch::NoteBeginLocal(EventCause cause) {
  NewHandler(planned_);
  const auto other = std::ranges::find(locals_, cause.instant, &EventCause::instant);
  if (other == locals_.end()) {
    locals_.push_back(cause);
  } else if (tied_[cause.instant] && other->handler != cause.handler) {
    Tie();
  }
}

void TieWatch::NotePlansNow() {
  // Events planned within a tick come after the others of the tick.
  if (!in_tick_) PlansAfter();
}

TieWatch::Touched& TieWatch::Find(uint64_t key) {
  const size_t mask = touched_.size() - 1;
  size_t at = key & mask;
  while (touched_[at].stamp == stamp_ && touched_[at].key != key) at = (at + 1) & mask;
  return touched_[at];
}

void TieWatch::Grow() {
  if (2 * (used_ + 1) <= touched_.size()) return;
  std::vector<Touched> old(std::max(kFirstTouched, 2 * touched_.size()));
  std::swap(old, touched_);
  for (const Touched& one : old) {
    if (one.stamp == stamp_) Find(one.key) = one;
  }
}

// Marks results as ambiguous if another handling touched the object in a clashing way and their
// order is unknown.
template <typename Clash>
void TieWatch::Touch(Kind kind, uint64_t id, uint8_t way, uint8_t ways, Clash clash) {
  Grow();
  const auto key_of = [&](uint8_t of_way) {
    return HashMix(HashMix(HashMix(now_instant_, static_cast<uint64_t>(kind)), id),
                   uint64_t{of_way} << 32 ^ static_cast<uint64_t>(planned_));
  };
  if (tied()) {
    for (uint8_t other = 0; other < ways; ++other) {
      if (!clash(other, way)) continue;
      const Touched& one = Find(key_of(other));
      if (one.stamp != stamp_) continue;
      const bool elsewhere = one.several || one.handler != handler_;
      const bool alike = ends_ != kNoEnds && one.ends == ends_;
      ambiguous_ = ambiguous_ || (elsewhere && !alike);
    }
  }
  const uint64_t key = key_of(way);
  Touched& mine = Find(key);
  if (mine.stamp != stamp_) {
    mine = {.key = key, .stamp = stamp_, .handler = handler_, .ends = ends_};
    ++used_;
    return;
  }
  mine.several = mine.several || mine.handler != handler_;
  if (mine.ends != ends_) mine.ends = kNoEnds;
}

void TieWatch::NoteTouchStream(SimIndex stream, StreamStep step) {
  constexpr auto kReduction = static_cast<uint8_t>(StreamStep::kReduction);
  Touch(Kind::kStream, stream, static_cast<uint8_t>(step), 3,
        [](uint8_t a, uint8_t b) { return a != b && a != kReduction && b != kReduction; });
}

void TieWatch::TouchMail(uint64_t key, Mail mail) {
  if (!on_) return;
  constexpr auto kByNode = static_cast<uint8_t>(Mail::kPostedByNode);
  Touch(Kind::kMail, key, static_cast<uint8_t>(mail), 3,
        [](uint8_t a, uint8_t b) { return a != b || a == kByNode; });
}

void TieWatch::TouchQueue(SimIndex queue, QueueStep step) {
  if (!on_) return;
  constexpr auto kLater = static_cast<uint8_t>(QueueStep::kEnter);
  Touch(Kind::kQueue, queue, static_cast<uint8_t>(step), 3,
        [](uint8_t a, uint8_t b) { return a == kLater || b == kLater; });
  if (step != QueueStep::kLeave) return;
  state_->left_queue = true;
  CheckCollectives(*state_);
}

void TieWatch::TouchLink(SimIndex link) {
  if (on_) Touch(Kind::kLink, link, 0, 1, [](uint8_t, uint8_t) { return true; });
}

void TieWatch::EndStream(SimIndex set, SimIndex queue) {
  if (on_) ends_ = {set, queue};
}

void TieWatch::BeginCollective() {
  if (!on_) return;
  ++state_->collectives;
  CheckCollectives(*state_);
}

// A collective that begins on completion of several nodes might begin in another handling, before
// or after streams have left their queues.
void TieWatch::CheckCollectives(const State& state) {
  if (ambiguous_ || !tied() || state.collectives == 0) return;
  if (!state.left_queue && state.collectives == 1) return;
  const auto here = [&](const Completed& one) { return one.planned == planned_; };
  ambiguous_ = std::ranges::count_if(state.completed, here) > 1;
}

void TieWatch::Skip() {
  if (!on_) return;
  state_->skipped = true;
  ambiguous_ = ambiguous_ || (tied() && state_->completed.size() > 1);
}

void TieWatch::Complete(Completion completion) {
  if (!on_) return;
  State& state = *state_;
  state.completed.push_back({.completion = std::move(completion),
                             .handler = handler_,
                             .planned = planned_,
                             .ends = ends_});
  if (ambiguous_ || !tied()) return;
  ambiguous_ = !Commutes(state);
  CheckCollectives(state);
}

// Returns whether the same nodes begin in every order of the completions.
bool TieWatch::Commutes(const State& state) const {
  std::vector<const Completed*> batch;
  for (const Completed& one : state.completed) {
    if (one.planned == planned_) batch.push_back(&one);
  }
  if (batch.size() < 2) return true;
  if (state.skipped || batch.size() > kMostCompleted) return false;
  for (size_t slot = 0; slot < kSlots; ++slot) {
    if (!SlotCommutes(batch, slot)) return false;
  }
  return true;
}

bool TieWatch::SlotCommutes(std::span<const Completed* const> batch, size_t slot) {
  const Slot before = batch.front()->completion.before[slot];
  bool free = before.free;
  const Completed* freed_by = nullptr;
  std::vector<SimIndex> enabled;
  for (const Completed* one : batch) {
    if (one->completion.freed == slot) {
      free = true;
      freed_by = one;
    }
    for (const auto& [of_slot, node] : one->completion.enabled) {
      if (of_slot == slot) enabled.push_back(node);
    }
  }
  if (!free || enabled.empty()) return true;
  const bool idle = before.ready == kNoIndex;
  if (!idle && before.free) return false;
  if (!idle && before.ready < *std::ranges::min_element(enabled)) return true;
  if (idle && enabled.size() == 1) return true;
  // One of them enables all nodes and also frees the slot: the others do not matter.
  const Completed* enabled_by = nullptr;
  for (const Completed* one : batch) {
    const bool enables = std::ranges::any_of(one->completion.children, [&](SimIndex child) {
      return std::ranges::find(enabled, child) != enabled.end();
    });
    if (!enables) continue;
    if (enabled_by != nullptr) return false;
    enabled_by = one;
  }
  return idle || enabled_by == freed_by;
}

}  // namespace etude
