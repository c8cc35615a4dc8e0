#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/base/container/id.h"
#include "src/base/result.h"
#include "src/run/step/data_flow.h"
#include "src/run/step/recorded_step.h"

namespace etude {

struct SlotTag;
// A place that holds one tensor while a step is replayed.
using SlotId = Id<SlotTag>;

// Where a slot's tensor comes from.
enum class SlotSource : uint8_t {
  kOutside,  // made before the first step, stays
  kResult,   // returned by an operator of the step
  kDerived,  // a view that unrecorded code made: built from another slot of the same memory
};

struct Slot {
  TensorId tensor;  // shape, type and place in the storage
  StorageVersion version;
  SlotSource source = SlotSource::kOutside;
  SlotId base;  // kDerived: the slot whose storage it shares
};

// Content that a slot's memory is given, whoever made it: that of the slot `from`, made outside.
struct Content {
  SlotId to;
  SlotId from;
};

// One operator of the replay. Inputs and results are parallel to DataFlow::inputs and outputs.
struct PlannedOp {
  NodeId node;
  std::vector<SlotId> inputs;   // kNone: undefined tensor
  std::vector<SlotId> results;  // kNone: nobody reads it, or the argument's slot holds it already
  std::vector<SlotId> release_before;  // gradients of the step before, where zero_grad ran
  std::vector<SlotId> derive;          // built before the call, in order
  std::vector<Content> given;          // to arguments, right before the call
  std::vector<SlotId> differentiated;  // inputs that had a gradient to come: PlanGradients
  std::vector<Content> content;        // of results that no operator writes: copied after the call
  std::vector<SlotId> release;         // last used by this operator: freed after the call
};

// Memory that has to be there before the step.
struct OutsideStorage {
  StorageVersion version;
  int64_t bytes = 0;  // as much as the widest use needs
  std::vector<SlotId> slots;
  uint32_t first_use = 0;  // index of an operator
  // Optimizer state: first used after gradients were accumulated. Programs make it in their first
  // step, between that step's results, which decides how the heap looks ever after.
  bool made_in_first_step = false;
};

// A leak: an operator reads memory made inside another one that does not return it (what a
// composite operator's parts saved for the backward pass).
struct HiddenResult {
  NodeId maker;  // the operator of the plan inside which the memory was made
  NodeId reader;
  NodeId origin;  // the operator that made it
};

// What the replay of a step does with its tensors: which slot each argument is read from, which
// slot each result goes to, and when slots are freed. Pure data.
struct ReplayPlan {
  std::vector<Slot> slots;
  std::vector<PlannedOp> ops;
  std::vector<OutsideStorage> outside;
  std::vector<SlotId> release_at_end;
  std::vector<HiddenResult> hidden;
  int64_t outside_bytes = 0;
  int64_t written_bytes = 0;  // outside memory that operators write to
  int64_t peak_bytes = 0;     // outside memory and what the step holds at its fullest moment
};

// Values that an operator of the step is given in place of those that were computed for it.
struct GivenValues {
  NodeId node;
  StorageVersion version;
  TensorId tensor;
};

// Plans the replay of `selection`, operators of the step in order of entry of which none contains
// another. `given`: to operators of the step, where these values were computed in it before the
// operator of the selection around them and the tensor is all of its memory. kBadInput if a
// tensor's size is negative or does not fit 63 bits.
Result<ReplayPlan> PlanReplay(const RecordedStep& step, const DataFlow& flow,
                              std::span<const NodeId> selection,
                              std::span<const GivenValues> given = {});

}  // namespace etude
