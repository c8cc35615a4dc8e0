#include "src/replay/replay_plan.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "src/replay/values/unwritten_memory.h"
#include "src/run/step/tensor_shape.h"
#include "src/run/step/updated_tensors.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

constexpr uint32_t kNever = UINT32_MAX;

class Planner {
 public:
  Planner(const RecordedStep& step, const DataFlow& flow, std::span<const NodeId> selection,
          std::span<const GivenValues> given)
      : step_(step),
        trace_(step.trace()),
        flow_(flow),
        selection_(selection),
        given_(given),
        updated_(step.trace()) {}

  Result<ReplayPlan> Run() {
    versions_.resize(flow_.version_count());
    IndexMakers();
    for (uint32_t i = 0; i < step_.nodes().size() && first_accumulation_ == kNever; ++i) {
      if (IsGradientAccumulation(trace_.name(step_.nodes()[i]))) first_accumulation_ = i;
    }
    plan_.ops.resize(selection_.size());
    for (uint32_t op = 0; op < selection_.size(); ++op) {
      plan_.ops[op].node = selection_[op];
      for (const DataFlow::Use& use : flow_.inputs(selection_[op])) {
        ETUDE_ASSIGN_OR_RETURN(const SlotId slot, ReadSlot(use, op));
        plan_.ops[op].inputs.push_back(slot);
      }
      if (WritesForm(BaseOperatorName(SchemaOf(trace_, selection_[op])))) GiveOwnTensor(op);
      for (const DataFlow::Use& use : flow_.outputs(selection_[op])) {
        ETUDE_ASSIGN_OR_RETURN(const SlotId slot, WriteSlot(use));
        plan_.ops[op].results.push_back(slot);
      }
      NoteWritten(selection_[op]);
    }
    PlanContent();
    PlanGiven();
    PlanReleases();
    EstimateMemory();
    return std::move(plan_);
  }

 private:
  struct VersionState {
    std::vector<SlotId> slots;
    int64_t bytes = 0;
    uint32_t outside = kNever;  // index in plan_.outside
    bool written = false;       // an operator writes to an argument in this memory
  };

  // Finds the selected operator around each position of the step.
  void IndexMakers() {
    maker_.assign(step_.nodes().size(), NodeId::None());
    for (const NodeId node : selection_) {
      const uint32_t begin = step_.position(node);
      for (uint32_t i = begin; i <= step_.last_inside(begin); ++i) {
        if (i == begin || Inside(i, node)) maker_[i] = node;
      }
    }
  }
  // Positions between a node and its last descendant may belong to other threads.
  bool Inside(uint32_t position, NodeId node) const {
    const NodeId around = step_.enclosing_operator(position);
    return around == node || (around && maker_[step_.position(around)] == node);
  }

  Status CountBytes(const DataFlow::Use& use) {
    const std::optional<TensorShape> shape = ShapeOf(trace_, trace_.tensor(use.tensor));
    if (!shape) return TensorError(use.tensor);
    int64_t& bytes = versions_[use.version.index()].bytes;
    bytes = std::max(bytes, shape->storage_bytes);
    return {};
  }

  tl::unexpected<Error> TensorError(TensorId id) const {
    const TensorUse& use = trace_.tensor(id);
    std::string sizes;
    for (const int64_t size : trace_.ints(use.shape)) {
      sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
    }
    return BadInput("tensor " + std::to_string(use.tensor) + " of type '" +
                    std::string(trace_.text(use.type)) + "' and sizes [" + sizes +
                    "]: expected a known element type and sizes that fit in 63 bits");
  }

  bool SameTensor(const TensorUse& a, const TensorUse& b) const {
    return a.offset == b.offset && a.shape == b.shape && a.strides == b.strides && a.type == b.type;
  }

  // Returns the slot for `use`: of the same tensor, otherwise the latest one of equal form on the
  // same memory.
  SlotId FindSlot(const DataFlow::Use& use) const {
    const TensorUse& wanted = trace_.tensor(use.tensor);
    SlotId alike;
    const auto& slots = versions_[use.version.index()].slots;
    for (size_t i = slots.size(); i-- > 0;) {
      const TensorUse& have = trace_.tensor(plan_.slots[slots[i].index()].tensor);
      if (!SameTensor(wanted, have)) continue;
      if (wanted.tensor == have.tensor) return slots[i];
      if (!alike) alike = slots[i];
    }
    return alike;
  }

  // Adds a slot that other uses cannot find.
  SlotId AddHiddenSlot(const Slot& slot) {
    plan_.slots.push_back(slot);
    last_use_.push_back(0);
    return SlotId::FromIndex(plan_.slots.size() - 1);
  }

  SlotId AddSlot(const DataFlow::Use& use, SlotSource source, SlotId base = {}) {
    const SlotId slot = AddHiddenSlot(
        {.tensor = use.tensor, .version = use.version, .source = source, .base = base});
    versions_[use.version.index()].slots.push_back(slot);
    return slot;
  }

  Result<SlotId> ReadSlot(const DataFlow::Use& use, uint32_t op) {
    if (!use.version) return SlotId::None();
    // Tensors of unknown type are passed on if an operator makes them; if they have to be made
    // here, an error is reported.
    VersionState& state = versions_[use.version.index()];
    SlotId slot = FindSlot(use);
    if (!slot && !state.slots.empty() && state.outside == kNever) {
      ETUDE_RETURN_IF_ERROR(CountBytes(use));
      const SlotId base = state.slots.back();
      slot = AddSlot(use, SlotSource::kDerived, base);
      last_use_[base.index()] = op;
      plan_.ops[op].derive.push_back(slot);
    } else if (!slot) {
      ETUDE_RETURN_IF_ERROR(CountBytes(use));
      slot = AddSlot(use, SlotSource::kOutside);
      if (state.outside == kNever) {
        state.outside = static_cast<uint32_t>(plan_.outside.size());
        plan_.outside.push_back(
            {.version = use.version,
             .bytes = 0,
             .slots = {},
             .first_use = op,
             .made_in_first_step = step_.position(selection_[op]) > first_accumulation_});
        NoteHidden(use.version, selection_[op]);
      }
      plan_.outside[state.outside].slots.push_back(slot);
    }
    last_use_[slot.index()] = op;
    return slot;
  }

  // Adds a separate tensor on the same memory for an outside tensor whose form the operator changes
  // in place, so that the next step starts with the recorded form.
  void GiveOwnTensor(uint32_t op) {
    PlannedOp& planned = plan_.ops[op];
    if (planned.inputs.empty() || !planned.inputs.front()) return;
    const SlotId outside = planned.inputs.front();
    const Slot slot = plan_.slots[outside.index()];
    if (slot.source != SlotSource::kOutside) return;
    const SlotId own = AddHiddenSlot({.tensor = slot.tensor,
                                      .version = slot.version,
                                      .source = SlotSource::kDerived,
                                      .base = outside});
    last_use_[own.index()] = op;
    planned.derive.push_back(own);
    planned.inputs.front() = own;
  }

  void NoteHidden(StorageVersion version, NodeId reader) {
    const NodeId origin = flow_.version(version).origin;
    if (!origin) return;
    const uint32_t position = step_.position(origin);
    if (position == RecordedStep::kNowhere || !maker_[position]) return;
    if (maker_[position] != reader) plan_.hidden.push_back({maker_[position], reader, origin});
  }

  Result<SlotId> WriteSlot(const DataFlow::Use& use) {
    if (!use.version) return SlotId::None();
    if (ShapeOf(trace_, trace_.tensor(use.tensor))) ETUDE_RETURN_IF_ERROR(CountBytes(use));
    const SlotId known = FindSlot(use);
    if (known) {
      const TensorUse& have = trace_.tensor(plan_.slots[known.index()].tensor);
      if (have.tensor == trace_.tensor(use.tensor).tensor) return SlotId::None();
    }
    const SlotId slot = AddSlot(use, SlotSource::kResult);
    last_use_[slot.index()] = kNever;  // unused so far
    return slot;
  }

  void PlanContent() {
    for (const UnwrittenMemory& memory : FindUnwrittenMemory(trace_, flow_, selection_)) {
      PlannedOp& maker = plan_.ops[memory.op];
      const SlotId to = maker.results[memory.result];
      if (!to) continue;
      const SlotId from = AddHiddenSlot({.tensor = plan_.slots[to.index()].tensor,
                                         .version = memory.version,
                                         .source = SlotSource::kOutside,
                                         .base = {}});
      plan_.outside.push_back(
          {.version = memory.version, .bytes = 0, .slots = {from}, .first_use = memory.op});
      maker.content.push_back({.to = to, .from = from});
    }
  }

  void PlanGiven() {
    if (given_.empty()) return;
    std::unordered_map<NodeId, uint32_t> index;
    for (uint32_t op = 0; op < selection_.size(); ++op) index[selection_[op]] = op;
    std::map<uint32_t, std::vector<const GivenValues*>> by_op;
    for (const GivenValues& values : given_) {
      const uint32_t position = step_.position(values.node);
      const auto around = index.find(maker_[position]);
      if (around != index.end()) by_op[around->second].push_back(&values);
    }
    for (const auto& [op, all] : by_op) {
      for (const GivenValues* values : all) Give(op, *values);
    }
  }

  void Give(uint32_t op, const GivenValues& values) {
    const VersionState& state = versions_[values.version.index()];
    PlannedOp& planned = plan_.ops[op];
    const std::optional<TensorShape> shape = ShapeOf(trace_, trace_.tensor(values.tensor));
    const bool is_whole =
        shape && trace_.tensor(values.tensor).offset == 0 && shape->storage_bytes == state.bytes;
    if (state.outside != kNever || !is_whole) return;
    const auto uses = flow_.inputs(planned.node);
    for (size_t i = 0; i < uses.size() && i < planned.inputs.size(); ++i) {
      if (uses[i].version != values.version || !planned.inputs[i]) continue;
      const auto known =
          std::ranges::find(planned.given, planned.inputs[i], &Content::to) != planned.given.end();
      if (known) return;
      // Values given to one operator may be given to others, too.
      SlotId& from = given_from_[values.version];
      if (!from) {
        from = AddHiddenSlot({.tensor = values.tensor,
                              .version = values.version,
                              .source = SlotSource::kOutside,
                              .base = {}});
        plan_.outside.push_back(
            {.version = values.version, .bytes = 0, .slots = {from}, .first_use = op});
      }
      planned.given.push_back({.to = planned.inputs[i], .from = from});
      return;
    }
  }

  void NoteWritten(NodeId node) {
    const auto uses = flow_.inputs(node);
    const std::vector<bool> updated = updated_.Of(node);
    for (size_t i = 0; i < updated.size() && i < uses.size(); ++i) {
      if (updated[i] && uses[i].version) versions_[uses[i].version.index()].written = true;
    }
  }

  void PlanReleases() {
    std::vector<SlotId> kept = KeptGradients();
    std::vector<bool> is_kept(plan_.slots.size());
    for (const SlotId slot : kept) is_kept[slot.index()] = true;
    Hold();
    for (uint32_t i = 0; i < plan_.slots.size(); ++i) {
      if (plan_.slots[i].source == SlotSource::kOutside || is_kept[i]) continue;
      if (last_use_[i] == kNever) continue;  // never stored, see below
      plan_.ops[last_use_[i]].release.push_back(SlotId(i));
    }
    // Among tensors freed by a backward function, the gradient comes before saved tensors.
    for (PlannedOp& op : plan_.ops) {
      std::ranges::stable_sort(op.release, std::ranges::greater{}, [&](SlotId slot) {
        return flow_.version(plan_.slots[slot.index()].version).made_at;
      });
    }
    for (PlannedOp& op : plan_.ops) {
      for (SlotId& slot : op.results) {
        if (slot && last_use_[slot.index()] == kNever && !is_kept[slot.index()]) slot = SlotId();
      }
    }
    for (uint32_t i = 0; i < step_.nodes().size() && !kept.empty(); ++i) {
      if (IsGradientRelease(trace_.name(step_.nodes()[i]))) gradient_releases_.push_back(i);
    }
    for (const SlotId slot : kept) ReleaseGradient(slot);
  }

  // Frees a gradient at a zero_grad after its last use. With several optimizers another one's may
  // come first: uses the last one before the next step makes it again, otherwise the first.
  void ReleaseGradient(SlotId slot) {
    const uint32_t made = step_.position(maker_of_[slot.index()]);
    uint32_t last_use = made;
    for (const SlotId other : versions_[plan_.slots[slot.index()].version.index()].slots) {
      const uint32_t op = last_use_[other.index()];
      if (op != kNever) last_use = std::max(last_use, step_.position(plan_.ops[op].node));
    }
    uint32_t release = kNever;
    for (const uint32_t mark : gradient_releases_) {
      if (mark < made || (mark > last_use && release == kNever)) release = mark;
    }
    const auto after = std::ranges::lower_bound(
        plan_.ops, release, {}, [&](const PlannedOp& op) { return step_.position(op.node); });
    if (release == kNever || after == plan_.ops.end()) {
      plan_.release_at_end.push_back(slot);
      return;
    }
    after->release_before.push_back(slot);
    if (release < made) outlives_step_.push_back(slot);
  }

  // Keeps the last used slot while the memory is in use.
  void Hold() {
    for (size_t i = 0; i < versions_.size(); ++i) {
      const VersionState& state = versions_[i];
      const DataFlow::Version& version = flow_.version(StorageVersion::FromIndex(i));
      if (state.outside != kNever || state.slots.empty()) continue;
      const auto after =
          std::ranges::upper_bound(plan_.ops, version.held_until, {},
                                   [&](const PlannedOp& op) { return step_.position(op.node); });
      if (after == plan_.ops.begin()) continue;
      const auto until = static_cast<uint32_t>(after - plan_.ops.begin()) - 1;
      const auto used_at = [&](SlotId slot) {
        return last_use_[slot.index()] == kNever ? 0 : last_use_[slot.index()];
      };
      const SlotId last = *std::ranges::max_element(state.slots, {}, used_at);
      if (plan_.slots[last.index()].source == SlotSource::kOutside) continue;
      if (used_at(last) < until) last_use_[last.index()] = until;
    }
  }

  // Returns the latest slot of each gradient that outlives the step.
  std::vector<SlotId> KeptGradients() {
    std::vector<SlotId> kept;
    maker_of_.assign(plan_.slots.size(), NodeId::None());
    for (const PlannedOp& op : plan_.ops) {
      for (const SlotId slot : op.results) {
        if (slot) maker_of_[slot.index()] = op.node;
      }
    }
    for (size_t i = 0; i < versions_.size(); ++i) {
      if (!flow_.version(StorageVersion::FromIndex(i)).kept_as_gradient) continue;
      const auto& slots = versions_[i].slots;
      const auto last = std::find_if(slots.rbegin(), slots.rend(), [&](SlotId slot) {
        return plan_.slots[slot.index()].source == SlotSource::kResult;
      });
      if (last != slots.rend()) kept.push_back(*last);
    }
    return kept;
  }

  void EstimateMemory() {
    std::vector<uint32_t> holders(versions_.size());  // current number of slots per version
    std::vector<int64_t> change(plan_.ops.size() + 1);
    __int128 outside = 0;
    __int128 written = 0;
    for (OutsideStorage& storage : plan_.outside) {
      storage.bytes = versions_[storage.version.index()].bytes;
      outside += storage.bytes;
      const VersionState& state = versions_[storage.version.index()];
      if (state.outside != kNever && state.written) written += storage.bytes;
    }
    __int128 now = outside;
    __int128 peak = outside;
    const auto hold = [&](SlotId slot) {
      const VersionState& state = versions_[plan_.slots[slot.index()].version.index()];
      if (state.outside != kNever) return;
      if (holders[plan_.slots[slot.index()].version.index()]++ == 0) now += state.bytes;
    };
    const auto drop = [&](SlotId slot) {
      const StorageVersion version = plan_.slots[slot.index()].version;
      if (versions_[version.index()].outside != kNever || holders[version.index()] == 0) return;
      if (--holders[version.index()] == 0) now -= versions_[version.index()].bytes;
    };
    for (const SlotId slot : outlives_step_) hold(slot);
    for (const PlannedOp& op : plan_.ops) {
      for (const SlotId slot : op.release_before) drop(slot);
      for (const SlotId slot : op.derive) hold(slot);
      for (const SlotId slot : op.results) {
        if (slot) hold(slot);
      }
      // Unused results exist while the operator runs.
      __int128 unread = 0;
      const auto uses = flow_.outputs(op.node);
      for (size_t i = 0; i < uses.size(); ++i) {
        if (!op.results[i] && uses[i].version && versions_[uses[i].version.index()].slots.empty()) {
          unread += versions_[uses[i].version.index()].bytes;
        }
      }
      peak = std::max(peak, now + unread);
      for (const SlotId slot : op.release) drop(slot);
    }
    constexpr __int128 kMost = INT64_MAX;
    plan_.outside_bytes = static_cast<int64_t>(std::min(outside, kMost));
    plan_.written_bytes = static_cast<int64_t>(std::min(written, kMost));
    plan_.peak_bytes = static_cast<int64_t>(std::min(peak, kMost));
  }

  const RecordedStep& step_;
  const Trace& trace_;
  const DataFlow& flow_;
  std::span<const NodeId> selection_;
  std::span<const GivenValues> given_;
  std::unordered_map<StorageVersion, SlotId> given_from_;
  ReplayPlan plan_;
  std::vector<VersionState> versions_;
  UpdatedTensors updated_;
  uint32_t first_accumulation_ = kNever;     // position of the first gradient accumulation
  std::vector<NodeId> maker_;                // by position
  std::vector<NodeId> maker_of_;             // by slot
  std::vector<uint32_t> last_use_;           // by slot: index of the operator
  std::vector<uint32_t> gradient_releases_;  // positions where zero_grad ran
  std::vector<SlotId> outlives_step_;        // gradients that the next step frees
};

}  // namespace

Result<ReplayPlan> PlanReplay(const RecordedStep& step, const DataFlow& flow,
                              std::span<const NodeId> selection,
                              std::span<const GivenValues> given) {
  return Planner(step, flow, selection, given).Run();
}

}  // namespace etude
