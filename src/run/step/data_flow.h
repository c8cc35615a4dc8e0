#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/base/container/id.h"
#include "src/run/step/recorded_step.h"
#include "src/trace/trace.h"

namespace etude {

struct StorageVersionTag;
// One lifetime of a piece of memory, from its first use to the reuse of its address.
using StorageVersion = Id<StorageVersionTag>;

// Maps the tensors of a step to the memory they live in.
//
// A trace names tensors and storages by addresses, which are reused after a free. The data flow
// assigns a version to each lifetime of a storage, following the recorded nesting: arguments are
// read on entering a node, results exist on leaving it. A result lives in the storage of an
// argument with the same address, else in memory with that address that a callee made while the
// node ran, else in new memory.
//
// O(n log n) for n nodes and their tensors, at any nesting depth; a result is compared with all
// arguments of its operator, and an argument with those of the caller.
//
// Immutable; const methods are thread-safe. Refers to the step.
class DataFlow {
 public:
  explicit DataFlow(const RecordedStep& step);

  struct Use {
    TensorId tensor;         // facts in the file
    StorageVersion version;  // kNone: undefined tensor
  };

  // Return the tensors among a node's arguments and results, lists flattened, in order. For each
  // argument that is a storage (`set_`), the first result, which lies in it, follows the arguments.
  std::span<const Use> inputs(NodeId node) const;
  std::span<const Use> outputs(NodeId node) const;

  struct Version {
    // Operator that made the memory, or during which it was first seen; kNone: it existed before
    // the step, or came from outside of any operator.
    NodeId origin;
    // A gradient that outlives the step, until the next step's zero_grad.
    bool kept_as_gradient = false;
    uint32_t made_at = 0;     // position in the step where it was made or first seen
    uint32_t held_until = 0;  // position of its last use or holder
  };
  const Version& version(StorageVersion id) const { return versions_[id.index()]; }
  size_t version_count() const { return versions_.size(); }

 private:
  struct Rows {
    uint32_t inputs = 0;  // begin of the inputs; outputs follow
    uint32_t outputs = 0;
    uint32_t end = 0;
  };
  class Walk;

  const RecordedStep* step_;
  std::vector<Use> uses_;
  std::vector<Rows> rows_;  // by position in the step
  std::vector<Version> versions_;
};

}  // namespace etude
