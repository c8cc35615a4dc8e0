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
// A place that holds one tensor during the replay of a step.
using SlotId = Id<SlotTag>;

// Origin of a slot's tensor.
enum class SlotSource : uint8_t {
  kOutside,  // made before the first step and kept
  kResult,   // returned by an operator of the step
  kDerived,  // a view made by unrecorded code, derived from another slot of the same memory
};

struct Slot {
  TensorId tensor;  // shape, type and position in the storage
  StorageVersion version;
  SlotSource source = SlotSource::kOutside;
  SlotId base;  // kDerived: slot whose storage it shares
};

// Content to copy into a slot's memory from the slot `from`, which is outside.
struct Content {
  SlotId to;
  SlotId from;
};

// An operator of the replay. Inputs and results are parallel to DataFlow::inputs and outputs.
struct PlannedOp {
  NodeId node;
  std::vector<SlotId> inputs;          // kNone: undefined tensor
  std::vector<SlotId> results;         // kNone: unused, or stored in the argument's slot
  std::vector<SlotId> release_before;  // gradients of the previous step, at a zero_grad
  std::vector<SlotId> derive;          // made before the call, in order
  std::vector<Content> given;          // copied to arguments immediately before the call
  std::vector<SlotId> differentiated;  // inputs that had a gradient to come: PlanGradients
  std::vector<Content> content;        // copied after the call, to results that no operator writes
  std::vector<SlotId> release;         // freed after the call: last use
};

// Memory that must exist before the step.
struct OutsideStorage {
  StorageVersion version;
  int64_t bytes = 0;  // size for the widest use
  std::vector<SlotId> slots;
  uint32_t first_use = 0;  // index of the operator
  // Optimizer state, first used after gradients were accumulated. Programs allocate it in their
  // first step between that step's results, which determines the heap layout of later steps.
  bool made_in_first_step = false;
};

// Memory made inside an operator that does not return it, and read by another operator: tensors
// that parts of a composite operator saved for the backward pass.
struct HiddenResult {
  NodeId maker;  // selected operator that contains `origin`
  NodeId reader;
  NodeId origin;  // operator that made the memory
};

// Tensor handling of a step's replay: slots of arguments and results, and when slots are freed.
// Plain data.
struct ReplayPlan {
  std::vector<Slot> slots;
  std::vector<PlannedOp> ops;
  std::vector<OutsideStorage> outside;
  std::vector<SlotId> release_at_end;
  std::vector<HiddenResult> hidden;
  int64_t outside_bytes = 0;
  int64_t written_bytes = 0;  // outside memory that operators write to
  int64_t peak_bytes = 0;     // peak of outside memory and step memory
};

// Values that replace the computed input of an operator of the step.
struct GivenValues {
  NodeId node;
  StorageVersion version;
  TensorId tensor;
};

// Plans the replay of `selection`: operators of the step in order of entry, not nested. `given`:
// values for operators of the step; applied if they are computed in the step before the enclosing
// selected operator, and the tensor covers all of its memory. kBadInput if a tensor's size is
// negative or exceeds 63 bits.
Result<ReplayPlan> PlanReplay(const RecordedStep& step, const DataFlow& flow,
                              std::span<const NodeId> selection,
                              std::span<const GivenValues> given = {});

}  // namespace etude
