#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/units.h"
#include "src/run/step/data_flow.h"
#include "src/run/step/recorded_step.h"
#include "src/trace/trace.h"

namespace etude {

// A piece of memory with tensors, from its first to its last recorded use in a step.
struct TensorLife {
  std::string_view device;  // "cpu", "cuda:0"; points into the trace
  Bytes bytes;              // required by the recorded tensors in it; 0: unknown
  NodeId origin;            // operator that made it; kNone: it existed before the step
  uint32_t from = 0;        // positions in the step
  uint32_t until = 0;       // the last one
  bool is_kept = false;     // gradients, and earlier memory that the step changes: to its end
};

// A use of such a piece of memory.
struct LifeUse {
  uint32_t life = 0;        // index into TensorLives::lives
  uint32_t position = 0;    // in the step
  uint32_t held_until = 0;  // last position at which this use needs the memory
  Bytes bytes;              // of the tensor, which may be a part of the memory; 0: unknown
};

// Lifetimes of the memory of a step's tensors (docs/models: memory.md). A lower bound, as
// TensorMemory. Immutable; refers to the step.
class TensorLives {
 public:
  explicit TensorLives(const RecordedStep& step);

  std::span<const TensorLife> lives() const { return lives_; }
  // Returns all uses, by position: as arguments and as results.
  std::vector<LifeUse> Uses() const;

 private:
  void FindLives();
  void HoldInFlight();

  const RecordedStep& step_;
  const Trace& trace_;
  DataFlow flow_;
  std::vector<TensorLife> lives_;  // by version of the data flow
};

}  // namespace etude
