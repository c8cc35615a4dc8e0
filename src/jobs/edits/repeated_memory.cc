#include "src/jobs/edits/repeated_memory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

#include "src/base/container/csr.h"

namespace etude {
namespace {

constexpr uint32_t kNoSlot = UINT32_MAX;
constexpr uint32_t kNoPlace = UINT32_MAX;
constexpr int64_t kBegin = std::numeric_limits<int64_t>::min();
constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

using Order = RepeatedStep::Order;

// A place of the edited step.
struct Slot {
  uint32_t place = kNoPlace;  // kNoPlace: an added layer
  uint32_t stage = 0;
};

// A moment in a pass of a stage, in its order.
struct Moment {
  int64_t order = 0;
  int64_t slot = 0;
  int64_t position = 0;

  auto operator<=>(const Moment&) const = default;
};

struct PassMoment {
  uint32_t pass = 0;
  Moment at;

  auto operator<=>(const PassMoment&) const = default;
};

// A use of memory in the edited step.
struct StageUse {
  uint32_t stage = 0;
  PassMoment until;
  int64_t bytes = 0;
};

// Micro-batches in whose passes memory changes.
enum class When : uint8_t { kEach, kFirst, kNotFirst, kLast };

// Memory that comes into use at a moment of a pass, or that goes out of use after it.
struct Change {
  Moment at;
  bool is_release = false;
  When when = When::kEach;
  uint32_t device = 0;
  int64_t bytes = 0;
};

// Memory of a device in a pass, relative to its begin.
struct PassMemory {
  int64_t peak = 0;
  int64_t end = 0;
};

class MemoryRepeater {
 public:
  MemoryRepeater(const TensorLives& lives, const RepeatedStep& step)
      : lives_(lives.lives()), uses_(lives.Uses()), step_(step) {
    uses_of_ = Csr<uint32_t>::Build(
        lives_.size(), std::span<const LifeUse>(uses_), [](const LifeUse& use) { return use.life; },
        [&](const LifeUse& use) { return static_cast<uint32_t>(&use - uses_.data()); });
  }

  std::optional<std::vector<DevicePeaks>> Run() {
    FindPresent();
    if (!MakeSlots()) return std::nullopt;
    FindRuns();
    FindTemplates();
    changes_.assign(step_.stages.size(), std::vector<std::vector<Change>>(step_.passes.size()));
    for (const TensorLife& life : lives_) {
      const auto known = std::ranges::find(devices_, life.device);
      device_of_.push_back(static_cast<uint32_t>(known - devices_.begin()));
      if (known == devices_.end()) devices_.push_back(life.device);
    }
    at_begin_.assign(step_.stages.size(), std::vector<int64_t>(devices_.size()));
    for (uint32_t life = 0; life < lives_.size(); ++life) {
      if (lives_[life].bytes.count == 0) continue;
      if (!lives_[life].origin) {
        AddEarlier(life);
      } else if (!AddMade(life)) {
        return std::nullopt;
      }
    }
    std::vector<DevicePeaks> peaks;
    for (uint32_t stage = 0; stage < step_.stages.size(); ++stage) peaks.push_back(PeaksOf(stage));
    return peaks;
  }

 private:
  bool IsLayer(uint32_t place) const {
    return place >= step_.first_layer && place < step_.end_layer;
  }
  uint32_t PassAt(uint32_t position) const { return step_.pass_of[position]; }
  std::span<const PlaceShare> SharesAt(uint32_t position) const {
    return step_.shares[step_.work_of[position]];
  }
  // Returns the only place of a position, or kNoPlace.
  uint32_t PlaceAt(uint32_t position) const {
    const auto shares = SharesAt(position);
    return shares.size() == 1 ? shares.front().place : kNoPlace;
  }
  template <typename Fn>
  void ForEachUse(uint32_t life, Fn fn) const {
    for (const uint32_t use : uses_of_[life]) fn(uses_[use]);
  }

  // ---- places of the edited step

  // Finds the layers that use memory in each pass.
  void FindPresent() {
    const size_t layers = step_.end_layer - step_.first_layer;
    present_.assign(step_.passes.size(), std::vector<bool>(layers));
    const auto add = [&](uint32_t position) {
      const uint32_t place = PlaceAt(position);
      if (place == kNoPlace || !IsLayer(place)) return;
      present_[PassAt(position)][place - step_.first_layer] = true;
    };
    for (const LifeUse& use : uses_) add(use.position);
    for (const TensorLife& life : lives_) {
      if (life.origin) add(life.from);
    }
    regular_.assign(layers, true);
    has_layers_.resize(step_.passes.size());
    for (size_t pass = 0; pass < step_.passes.size(); ++pass) {
      has_layers_[pass] = std::ranges::count(present_[pass], true) > 0;
      if (step_.passes[pass].order == Order::kRecorded || !has_layers_[pass]) continue;
      for (size_t i = 0; i < layers; ++i) regular_[i] = regular_[i] && present_[pass][i];
    }
  }
  bool IsPresent(uint32_t pass, uint32_t place) const {
    return present_[pass][place - step_.first_layer];
  }
  bool IsRegular(uint32_t place) const { return regular_[place - step_.first_layer]; }

  // Returns the element of a range for which `fits` is true, the nearest to its middle; kNoPlace
  // without one.
  template <typename Fits>
  static uint32_t NearestToMiddle(uint32_t begin, uint32_t end, Fits fits) {
    uint32_t nearest = kNoPlace;
    int64_t least = 0;
    for (uint32_t i = begin; i < end; ++i) {
      const int64_t distance = std::abs(2 * int64_t{i} - int64_t{begin} - int64_t{end} + 1);
      if (!fits(i) || (nearest != kNoPlace && distance >= least)) continue;
      nearest = i;
      least = distance;
    }
    return nearest;
  }

  // Returns the layers of the edited step as recorded ones, kNoPlace for added ones; nullopt if
  // there is no place to add or leave out that many.
  std::optional<std::vector<uint32_t>> LayersInTurn(uint32_t wanted) {
    std::vector<uint32_t> layers;
    for (uint32_t i = step_.first_layer; i < step_.end_layer; ++i) layers.push_back(i);
    const auto recorded = static_cast<uint32_t>(layers.size());
    middle_ = step_.first_layer;
    if (wanted == recorded) return layers;
    if (wanted > recorded) {
      middle_ = NearestToMiddle(step_.first_layer, step_.end_layer - 1,
                                [&](uint32_t i) { return IsRegular(i) && IsRegular(i + 1); });
      if (middle_ == kNoPlace) return std::nullopt;
      layers.insert(layers.begin() + (middle_ - step_.first_layer) + 1, wanted - recorded,
                    kNoPlace);
      return layers;
    }
    const uint32_t fewer = recorded - wanted;
    const auto is_regular = [&](uint32_t i) {
      return std::ranges::all_of(std::span(layers).subspan(i, fewer),
                                 [&](uint32_t place) { return IsRegular(place); });
    };
    const uint32_t begin = NearestToMiddle(0, wanted + 1, is_regular);
    if (begin == kNoPlace) return std::nullopt;
    layers.erase(layers.begin() + begin, layers.begin() + begin + fewer);
    return layers;
  }

  bool MakeSlots() {
    uint32_t wanted = 0;
    for (const RepeatedStep::Stage& stage : step_.stages) wanted += stage.layers;
    std::vector<uint32_t> layers;
    if (step_.end_layer > step_.first_layer) {
      auto in_turn = LayersInTurn(wanted);
      if (!in_turn) return false;
      layers = *std::move(in_turn);
    }
    size_t next = 0;
    const auto add = [&](uint32_t place, uint32_t stage) {
      if (place != kNoPlace) slot_of_[place] = static_cast<uint32_t>(slots_.size());
      slots_.push_back({.place = place, .stage = stage});
    };
    for (uint32_t i = 0; i < step_.stages.size(); ++i) {
      const RepeatedStep::Stage& stage = step_.stages[i];
      stage_begins_.push_back(static_cast<uint32_t>(slots_.size()));
      for (const uint32_t place : stage.places) {
        if (place < step_.end_layer) add(place, i);
      }
      if (stage.layers > 0 && next == 0) first_slot_ = static_cast<uint32_t>(slots_.size());
      for (uint32_t k = 0; k < stage.layers; ++k) add(layers[next++], i);
      if (stage.layers > 0) last_slot_ = static_cast<uint32_t>(slots_.size() - 1);
      for (const uint32_t place : stage.places) {
        if (place >= step_.end_layer) add(place, i);
      }
    }
    stage_begins_.push_back(static_cast<uint32_t>(slots_.size()));
    return true;
  }

  // Returns the slot of a recorded place, or of the nearest one that is not left out; kNoSlot if no
  // stage runs it.
  uint32_t KeptSlot(uint32_t place) const {
    if (const auto slot = slot_of_.find(place); slot != slot_of_.end()) return slot->second;
    if (!IsLayer(place)) return kNoSlot;
    if (place + 1 == step_.end_layer) return last_slot_;
    for (uint32_t i = place; i-- > step_.first_layer;) {
      if (const auto slot = slot_of_.find(i); slot != slot_of_.end()) return slot->second;
    }
    return first_slot_;
  }

  // Returns the slot of a stage that runs an operator of several places: the first with one of
  // them; kNoSlot without one.
  uint32_t SlotOnStage(uint32_t stage, std::span<const PlaceShare> shares) const {
    const bool of_layers =
        std::ranges::any_of(shares, [&](const PlaceShare& one) { return IsLayer(one.place); });
    for (uint32_t i = stage_begins_[stage]; i < stage_begins_[stage + 1]; ++i) {
      const bool runs = slots_[i].place == kNoPlace
                            ? of_layers
                            : std::ranges::count(shares, slots_[i].place, &PlaceShare::place) > 0;
      if (runs) return i;
    }
    return kNoSlot;
  }

  // Returns the share of an operator of several places that a stage runs.
  double ShareOnStage(uint32_t stage, std::span<const PlaceShare> shares) const {
    if (shares.front().share >= 1) return 1;
    double sum = 0;
    for (uint32_t i = stage_begins_[stage]; i < stage_begins_[stage + 1]; ++i) {
      const uint32_t place = slots_[i].place == kNoPlace ? middle_ : slots_[i].place;
      const auto share = std::ranges::find(shares, place, &PlaceShare::place);
      if (share != shares.end()) sum += share->share;
    }
    return sum;
  }

  // ---- moments

  // Finds where consecutive positions of a pass that belong to the same places begin, and where
  // layers begin in a pass.
  void FindRuns() {
    run_begins_.resize(step_.pass_of.size());
    block_begins_.assign(step_.passes.size(),
                         std::vector<uint32_t>(step_.end_layer - step_.first_layer, UINT32_MAX));
    std::vector<std::pair<uint32_t, uint32_t>> current(step_.passes.size(), {kNoPlace, 0});
    for (uint32_t i = 0; i < run_begins_.size(); ++i) {
      auto& [work, begin] = current[PassAt(i)];
      if (work != step_.work_of[i]) begin = i;
      work = step_.work_of[i];
      run_begins_[i] = begin;
      const uint32_t place = PlaceAt(i);
      if (place == kNoPlace || !IsLayer(place)) continue;
      uint32_t& block = block_begins_[PassAt(i)][place - step_.first_layer];
      block = std::min(block, i);
    }
  }

  // Returns the moment in a slot that corresponds to the position `until`, at or behind one of a
  // recorded place. Positions in layers count from the layer's begin.
  Moment MomentOf(uint32_t position, uint32_t slot, uint32_t until) const {
    const uint32_t pass = PassAt(position);
    const uint32_t place = PlaceAt(position);
    const bool is_in_layer = place != kNoPlace && IsLayer(place);
    const int64_t since =
        int64_t{until} - (is_in_layer ? block_begins_[pass][place - step_.first_layer] : 0);
    switch (step_.passes[pass].order) {
      case Order::kForward: return {.order = slot, .slot = 0, .position = since};
      case Order::kBackward: return {.order = -int64_t{slot}, .slot = 0, .position = since};
      case Order::kRecorded: break;
    }
    if (!has_layers_[pass]) return {.order = 0, .slot = 0, .position = until};
    return {.order = run_begins_[position], .slot = slot, .position = until};
  }
  StageUse UseOf(const LifeUse& use, uint32_t slot) const {
    PassMoment until{.pass = PassAt(use.position),
                     .at = MomentOf(use.position, slot, use.held_until)};
    // A call around a later pass.
    const uint32_t later = PassAt(use.held_until);
    if (later > until.pass && !step_.passes[later].is_repeated &&
        step_.work_of[use.held_until] == step_.work_of[use.position]) {
      until = {.pass = later, .at = MomentOf(use.held_until, slot, use.held_until)};
    }
    return {.stage = slots_[slot].stage, .until = until, .bytes = use.bytes.count};
  }

  // ---- recorded layers that added ones repeat

  // Finds for each pass the layer whose memory its neighbours use most and operators outside of the
  // layers least.
  void FindTemplates() {
    const size_t layers = step_.end_layer - step_.first_layer;
    made_.assign(step_.passes.size(), std::vector<std::vector<uint32_t>>(layers));
    std::vector<std::vector<int64_t>> outside(step_.passes.size(), std::vector<int64_t>(layers));
    for (uint32_t life = 0; life < lives_.size(); ++life) {
      if (lives_[life].bytes.count == 0 || !lives_[life].origin) continue;
      const uint32_t pass = PassAt(lives_[life].from);
      const uint32_t place = PlaceAt(lives_[life].from);
      if (place == kNoPlace || !IsLayer(place)) continue;
      made_[pass][place - step_.first_layer].push_back(life);
      int64_t& number = outside[pass][place - step_.first_layer];
      ForEachUse(life, [&](const LifeUse& use) {
        const uint32_t user = PlaceAt(use.position);
        if (user != kNoPlace && user != place) number += IsLayer(user) ? -1 : 1;
      });
    }
    if (layers == 0) return;
    for (uint32_t pass = 0; pass < step_.passes.size(); ++pass) {
      templates_.push_back(
          LeastLayer(outside[pass], [&](uint32_t place) { return IsPresent(pass, place); }));
    }
    FindEarlierOfAll();
  }

  // A kind of memory from before the step, of which each layer has as much.
  struct EarlierKind {
    int64_t bytes = 0;
    bool is_kept = false;
    std::vector<uint32_t> passes;  // with uses, ascending

    auto operator<=>(const EarlierKind&) const = default;
  };

  EarlierKind KindOf(uint32_t life) const {
    EarlierKind kind{.bytes = lives_[life].bytes.count, .is_kept = lives_[life].is_kept};
    ForEachUse(life, [&](const LifeUse& use) {
      const uint32_t pass = PassAt(use.position);
      if (kind.passes.empty() || kind.passes.back() != pass) kind.passes.push_back(pass);
    });
    return kind;
  }

  // Finds the memory from before the step that each layer has, such as its parameters. Others, such
  // as the input of the first layer, belong to its neighbours outside.
  void FindEarlierOfAll() {
    using Kinds = std::map<EarlierKind, uint64_t>;
    std::map<uint32_t, std::vector<uint32_t>> owned;  // by layer
    for (uint32_t life = 0; life < lives_.size(); ++life) {
      if (lives_[life].bytes.count == 0 || lives_[life].origin) continue;
      const uint32_t owner = OwnerOf(life);
      if (owner != kNoPlace) owned[owner].push_back(life);
    }
    std::optional<Kinds> common;
    for (uint32_t place = step_.first_layer; place < step_.end_layer; ++place) {
      if (!IsRegular(place)) continue;
      Kinds own;
      for (const uint32_t life : owned[place]) ++own[KindOf(life)];
      if (!common) common = own;
      for (auto& [kind, count] : *common) count = std::min(count, own[kind]);
    }
    of_all_.resize(lives_.size());
    earlier_template_ = NearestToMiddle(step_.first_layer, step_.end_layer,
                                        [&](uint32_t place) { return IsRegular(place); });
    for (const auto& [place, lives] : owned) {
      Kinds rest = common.value_or(Kinds());
      for (const uint32_t life : lives) {
        const auto left = rest.find(KindOf(life));
        if (left == rest.end() || left->second == 0) continue;
        --left->second;
        of_all_[life] = true;
      }
    }
  }

  // Returns the fitting layer with the least number, the nearest to the middle of those; kNoPlace
  // without one.
  template <typename Fits>
  uint32_t LeastLayer(const std::vector<int64_t>& numbers, Fits fits) const {
    std::optional<int64_t> least;
    for (uint32_t i = 0; i < numbers.size(); ++i) {
      if (fits(step_.first_layer + i)) least = std::min(least.value_or(numbers[i]), numbers[i]);
    }
    return NearestToMiddle(step_.first_layer, step_.end_layer, [&](uint32_t place) {
      return fits(place) && numbers[place - step_.first_layer] == least;
    });
  }

  // Returns the layer that alone uses memory from before the step; kNoPlace if others do.
  uint32_t OwnerOf(uint32_t life) const {
    uint32_t owner = kNoPlace;
    bool is_one = true;
    ForEachUse(life, [&](const LifeUse& use) {
      const uint32_t place = PlaceAt(use.position);
      if (place == kNoPlace) return;
      is_one = is_one && (owner == kNoPlace || owner == place);
      owner = place;
    });
    return is_one && owner != kNoPlace && IsLayer(owner) ? owner : kNoPlace;
  }

  // Returns the slots with the memory of a layer: its own, and those of added layers that repeat
  // it.
  std::vector<uint32_t> SlotsOf(uint32_t place, bool is_repeated) const {
    std::vector<uint32_t> slots;
    if (const auto slot = slot_of_.find(place); slot != slot_of_.end()) {
      slots.push_back(slot->second);
    }
    for (uint32_t i = 0; is_repeated && i < slots_.size(); ++i) {
      if (slots_[i].place == kNoPlace) slots.push_back(i);
    }
    return slots;
  }

  // ---- uses in the edited step

  // Adds a use by one place of memory that belongs to no layer. `by_all`: several layers use it,
  // so added ones do, too.
  void AddUseOfOther(const LifeUse& use, bool by_all, std::vector<StageUse>& uses) const {
    const uint32_t place = PlaceAt(use.position);
    const uint32_t slot = KeptSlot(place);
    if (slot != kNoSlot) uses.push_back(UseOf(use, slot));
    if (!by_all || !IsLayer(place) || place != templates_[PassAt(use.position)]) return;
    for (uint32_t i = first_slot_; i <= last_slot_; ++i) {
      if (slots_[i].place == kNoPlace) uses.push_back(UseOf(use, i));
    }
  }

  // Adds a use of what the recorded layer `owner` has, for the layer in `slot`. Returns false if
  // the use cannot be told.
  bool AddUseOfLayer(uint32_t life, const LifeUse& use, uint32_t slot, uint32_t owner,
                     std::vector<StageUse>& uses) const {
    const uint32_t place = PlaceAt(use.position);
    if (!IsLayer(place) || place == owner) {
      const uint32_t user = IsLayer(place) ? slot : KeptSlot(place);
      if (user != kNoSlot) uses.push_back(UseOf(use, user));
      return true;
    }
    const bool is_next = place == owner + 1 || owner == place + 1;
    if (!is_next) {
      uses.push_back(UseOf(use, KeptSlot(place)));
      return true;
    }
    const uint32_t user = place > owner ? slot + 1 : slot - 1;
    if (user < first_slot_ || user > last_slot_) {
      return AddUsesOfEnd(life, use, slot, owner, uses);
    }
    const uint32_t user_place = slots_[user].place;
    if (user_place != kNoPlace && !IsPresent(PassAt(use.position), user_place)) return false;
    uses.push_back(UseOf(use, user));
    return true;
  }

  // Adds the uses outside of the layers of what the first or last layer has, for a layer that takes
  // its place.
  bool AddUsesOfEnd(uint32_t life, const LifeUse& use, uint32_t slot, uint32_t owner,
                    std::vector<StageUse>& uses) const {
    if (!lives_[life].origin) return false;
    const uint32_t end = PlaceAt(use.position) > owner ? step_.end_layer - 1 : step_.first_layer;
    const std::vector<std::vector<uint32_t>>& made = made_[PassAt(lives_[life].from)];
    const std::vector<uint32_t>& own = made[owner - step_.first_layer];
    const std::vector<uint32_t>& others = made[end - step_.first_layer];
    const auto index = static_cast<size_t>(std::ranges::lower_bound(own, life) - own.begin());
    if (own.size() != others.size() || lives_[others[index]].bytes != lives_[life].bytes) {
      return false;
    }
    ForEachUse(others[index], [&](const LifeUse& other) {
      const uint32_t place = PlaceAt(other.position);
      if (place == kNoPlace || IsLayer(place)) return;
      const uint32_t user = KeptSlot(place);
      if (user != kNoSlot) uses.push_back(UseOf(other, user));
    });
    uses.push_back({.stage = slots_[slot].stage,
                    .until = {.pass = PassAt(lives_[life].from),
                              .at = MomentOf(lives_[life].from, slot, lives_[life].from)},
                    .bytes = 0});
    return true;
  }

  // Adds the uses by operators of several places that a stage runs.
  void AddUseOfSeveral(const LifeUse& use, uint32_t stage, std::vector<StageUse>& uses) const {
    const uint32_t slot = SlotOnStage(stage, SharesAt(use.position));
    if (slot != kNoSlot) uses.push_back(UseOf(use, slot));
  }

  bool IsUsedBySeveralLayers(uint32_t life) const {
    uint32_t first = kNoPlace;
    bool several = false;
    ForEachUse(life, [&](const LifeUse& use) {
      const uint32_t place = PlaceAt(use.position);
      if (place == kNoPlace || !IsLayer(place)) return;
      several = several || (first != kNoPlace && first != place);
      first = place;
    });
    return several;
  }

  // ---- memory that the step makes

  bool AddMade(uint32_t life) {
    const uint32_t from = lives_[life].from;
    const uint32_t place = PlaceAt(from);
    if (place == kNoPlace) {
      AddMadeBySeveral(life);
      return true;
    }
    const bool is_layer = IsLayer(place);
    const bool by_all = !is_layer && IsUsedBySeveralLayers(life);
    for (const uint32_t slot : SlotsOf(place, is_layer && place == templates_[PassAt(from)])) {
      std::vector<StageUse> uses;
      bool is_told = true;
      ForEachUse(life, [&](const LifeUse& use) {
        if (PlaceAt(use.position) == kNoPlace) {
          AddUseOfSeveral(use, slots_[slot].stage, uses);
        } else if (is_layer) {
          is_told = is_told && AddUseOfLayer(life, use, slot, place, uses);
        } else {
          AddUseOfOther(use, by_all, uses);
        }
      });
      if (!is_told) return false;
      AddPiece(life, slot, uses);
    }
    return true;
  }

  // Adds memory that a slot makes, to its stage and to those that use it.
  void AddPiece(uint32_t life, uint32_t slot, std::span<const StageUse> uses) {
    const uint32_t from = lives_[life].from;
    const uint32_t stage = slots_[slot].stage;
    const PassMoment made{.pass = PassAt(from), .at = MomentOf(from, slot, from)};
    const Order order = step_.passes[made.pass].order;
    std::map<uint32_t, StageUse> last;  // by stage
    for (const StageUse& use : uses) {
      StageUse& of = last.try_emplace(use.stage, use).first->second;
      of.until = std::max(of.until, use.until);
      of.bytes = std::max(of.bytes, use.bytes);
    }
    StageUse own = last.contains(stage) ? last[stage] : StageUse{stage, made, 0};
    own.until = std::max(own.until, made);
    last.erase(stage);
    // Stages between its maker and its last user pass it on.
    if (!last.empty() && order != Order::kRecorded) {
      own.until = std::max(own.until, {made.pass, {.order = kEnd}});
      const bool is_forward = order == Order::kForward;
      const uint32_t end = is_forward ? last.rbegin()->first : last.begin()->first;
      int64_t bytes = 0;
      for (const auto& [user, use] : last) bytes = std::max(bytes, use.bytes);
      for (uint32_t i = stage; i != end;) {
        i = is_forward ? i + 1 : i - 1;
        if ((end > stage) != is_forward) break;
        StageUse& use =
            last.try_emplace(i, StageUse{i, {made.pass, {.order = kBegin}}, bytes}).first->second;
        if (i != end) use.until = std::max(use.until, {made.pass, {.order = kEnd}});
      }
    }
    AddLife(life, lives_[life].bytes.count, made, own, uses);
    for (const auto& [user, use] : last) {
      const int64_t bytes =
          use.bytes > 0 ? std::min(use.bytes, lives_[life].bytes.count) : lives_[life].bytes.count;
      const uint32_t pass = order == Order::kRecorded ? use.until.pass : made.pass;
      const StageUse received{user, std::max(use.until, {pass, {.order = kBegin}}), bytes};
      AddUnkept(life, bytes, {pass, {.order = kBegin}}, received);
    }
  }

  void AddMadeBySeveral(uint32_t life) {
    const uint32_t from = lives_[life].from;
    const bool by_all = IsUsedBySeveralLayers(life);
    for (uint32_t stage = 0; stage < step_.stages.size(); ++stage) {
      const uint32_t slot = SlotOnStage(stage, SharesAt(from));
      if (slot == kNoSlot) continue;
      std::vector<StageUse> uses;
      ForEachUse(life, [&](const LifeUse& use) {
        if (PlaceAt(use.position) == kNoPlace) {
          AddUseOfSeveral(use, stage, uses);
        } else {
          AddUseOfOther(use, by_all, uses);
        }
      });
      const PassMoment made{.pass = PassAt(from), .at = MomentOf(from, slot, from)};
      StageUse own{stage, made, 0};
      for (const StageUse& use : uses) {
        if (use.stage == stage) own.until = std::max(own.until, use.until);
      }
      const double share = ShareOnStage(stage, SharesAt(from));
      AddLife(life, BytesOfShare(life, share), made, own, uses);
    }
  }

  int64_t BytesOfShare(uint32_t life, double share) const {
    return std::llround(static_cast<double>(lives_[life].bytes.count) * share);
  }

  // Adds memory to the stage that makes it.
  void AddLife(uint32_t life, int64_t bytes, const PassMoment& made, const StageUse& own,
               std::span<const StageUse> uses) {
    if (!lives_[life].is_kept) return AddUnkept(life, bytes, made, own);
    const bool is_repeated = step_.passes[made.pass].is_repeated;
    Add(own.stage, life, made, bytes, is_repeated ? When::kFirst : When::kEach);
    if (!is_repeated) return;
    // Gradients of later micro-batches are added to the first ones.
    PassMoment last = made;
    for (const StageUse& use : uses) {
      if (use.stage == own.stage && use.until.pass == made.pass) last = std::max(last, use.until);
    }
    Add(own.stage, life, made, bytes, When::kNotFirst);
    Add(own.stage, life, last, -bytes, When::kNotFirst);
  }

  void AddUnkept(uint32_t life, int64_t bytes, const PassMoment& made, const StageUse& own) {
    const bool is_repeated = step_.passes[made.pass].is_repeated;
    const bool ends_repeated = step_.passes[own.until.pass].is_repeated;
    Add(own.stage, life, made, bytes, When::kEach);
    const bool is_once = is_repeated == ends_repeated;
    Add(own.stage, life, own.until,
        is_once || ends_repeated ? -bytes : -bytes * step_.micro_batches,
        is_once || !ends_repeated ? When::kEach : When::kLast);
  }

  void Add(uint32_t stage, uint32_t life, const PassMoment& at, int64_t bytes, When when) {
    changes_[stage][at.pass].push_back({.at = at.at,
                                        .is_release = bytes < 0,
                                        .when = when,
                                        .device = device_of_[life],
                                        .bytes = bytes});
  }

  // ---- memory from before the step

  void AddEarlier(uint32_t life) {
    const uint32_t owner = OwnerOf(life);
    if (owner != kNoPlace) return AddEarlierOfLayer(life, owner);
    std::vector<StageUse> uses;
    const bool by_all = IsUsedBySeveralLayers(life);
    const LifeUse* of_several = nullptr;  // the first
    ForEachUse(life, [&](const LifeUse& use) {
      if (PlaceAt(use.position) != kNoPlace) AddUseOfOther(use, by_all, uses);
      if (PlaceAt(use.position) == kNoPlace && of_several == nullptr) of_several = &use;
    });
    const bool has_place = !uses.empty();
    for (uint32_t stage = 0; stage < step_.stages.size(); ++stage) {
      const bool is_used = std::ranges::count(uses, stage, &StageUse::stage) > 0;
      if (has_place && !is_used) continue;
      std::vector<StageUse> own = uses;
      ForEachUse(life, [&](const LifeUse& use) {
        if (PlaceAt(use.position) == kNoPlace) AddUseOfSeveral(use, stage, own);
      });
      std::erase_if(own, [&](const StageUse& use) { return use.stage != stage; });
      if (own.empty()) continue;
      const double share = has_place ? 1 : ShareOnStage(stage, SharesAt(of_several->position));
      AddEarlierOn(stage, life, BytesOfShare(life, share), own);
    }
  }

  void AddEarlierOfLayer(uint32_t life, uint32_t owner) {
    std::vector<uint32_t> slots = SlotsOf(owner, of_all_[life] && owner == earlier_template_);
    if (slots.empty() && !of_all_[life]) slots.push_back(KeptSlot(owner));
    for (const uint32_t slot : slots) {
      std::vector<StageUse> uses;
      ForEachUse(life, [&](const LifeUse& use) {
        if (PlaceAt(use.position) == kNoPlace) {
          AddUseOfSeveral(use, slots_[slot].stage, uses);
        } else {
          uses.push_back(UseOf(use, slot));
        }
      });
      AddEarlierOn(slots_[slot].stage, life, lives_[life].bytes.count, uses);
    }
  }

  void AddEarlierOn(uint32_t stage, uint32_t life, int64_t bytes, std::span<const StageUse> uses) {
    at_begin_[stage][device_of_[life]] += bytes;
    if (lives_[life].is_kept) return;
    const PassMoment last = std::ranges::max_element(uses, {}, &StageUse::until)->until;
    Add(stage, life, last, -bytes, step_.passes[last.pass].is_repeated ? When::kLast : When::kEach);
  }

  // ---- peaks

  DevicePeaks PeaksOf(uint32_t stage) {
    const auto is_before = [](const Change& a, const Change& b) {
      return std::tie(a.at, a.is_release) < std::tie(b.at, b.is_release);
    };
    for (std::vector<Change>& changes : changes_[stage]) {
      std::stable_sort(changes.begin(), changes.end(), is_before);
    }
    // By pass, and whether it is the first and the last micro-batch.
    std::vector<std::array<std::vector<PassMemory>, 4>> passes(step_.passes.size());
    std::vector<int64_t> live = at_begin_[stage];
    std::vector<int64_t> peaks = live;
    for (const RepeatedStep::Run& run : step_.stages[stage].runs) {
      const bool is_repeated = step_.passes[run.pass].is_repeated;
      const bool is_first = !is_repeated || run.micro_batch == 0;
      const bool is_last = !is_repeated || run.micro_batch + 1 == step_.micro_batches;
      std::vector<PassMemory>& memory =
          passes[run.pass][(is_first ? 1U : 0U) + (is_last ? 2U : 0U)];
      if (memory.empty()) memory = MemoryIn(changes_[stage][run.pass], is_first, is_last);
      for (size_t i = 0; i < live.size(); ++i) {
        peaks[i] = std::max(peaks[i], live[i] + memory[i].peak);
        live[i] += memory[i].end;
      }
    }
    DevicePeaks found;
    for (size_t i = 0; i < peaks.size(); ++i) {
      if (peaks[i] > 0) found[devices_[i]] = Bytes{peaks[i]};
    }
    return found;
  }

  std::vector<PassMemory> MemoryIn(std::span<const Change> changes, bool is_first,
                                   bool is_last) const {
    std::vector<PassMemory> memory(devices_.size());
    for (const Change& change : changes) {
      const bool counts = change.when == When::kEach || (change.when == When::kFirst && is_first) ||
                          (change.when == When::kNotFirst && !is_first) ||
                          (change.when == When::kLast && is_last);
      if (!counts) continue;
      PassMemory& of = memory[change.device];
      of.end += change.bytes;
      of.peak = std::max(of.peak, of.end);
    }
    return memory;
  }

  std::span<const TensorLife> lives_;
  std::vector<LifeUse> uses_;
  const RepeatedStep& step_;
  Csr<uint32_t> uses_of_;                                 // by life
  std::vector<std::vector<bool>> present_;                // by pass and layer
  std::vector<bool> regular_;                             // by layer: it is in all passes
  std::vector<bool> has_layers_;                          // by pass
  uint32_t middle_ = 0;                                   // layer after which others are added
  std::vector<Slot> slots_;                               // in the order of the model
  std::vector<uint32_t> stage_begins_;                    // first slot, by stage
  std::map<uint32_t, uint32_t> slot_of_;                  // by recorded place
  uint32_t first_slot_ = 1;                               // of layers
  uint32_t last_slot_ = 0;                                // likewise
  std::vector<uint32_t> run_begins_;                      // by position
  std::vector<std::vector<uint32_t>> block_begins_;       // by pass and layer
  std::vector<std::vector<std::vector<uint32_t>>> made_;  // lives by pass and layer
  std::vector<uint32_t> templates_;                       // by pass
  uint32_t earlier_template_ = kNoPlace;
  std::vector<bool> of_all_;  // by life: each layer has such memory from before the step
  std::vector<std::string_view> devices_;
  std::vector<uint32_t> device_of_;                        // by life
  std::vector<std::vector<int64_t>> at_begin_;             // by stage and device
  std::vector<std::vector<std::vector<Change>>> changes_;  // by stage and pass
};

}  // namespace

std::optional<std::vector<DevicePeaks>> FindRepeatedMemory(const TensorLives& lives,
                                                           const RepeatedStep& step) {
  return MemoryRepeater(lives, step).Run();
}

}  // namespace etude
