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
// One life of a piece of memory, from its first sight to the reuse of its address.
using StorageVersion = Id<StorageVersionTag>;

// Which memory each tensor of a step lives in.
//
// A trace names tensors and storages by addresses, which are reused as soon as they are free. The
// data flow gives each life of a storage a version, following the whole recorded nesting: on
// entering a node its arguments are read, on leaving it its results are there. A result lives in
// the storage of an argument if it has the same address, in what a callee made while the node ran
// if that has the same address, and in new memory otherwise.
//
// O(n log n) for n nodes and their tensors, however deep they are nested; a result is compared with
// all arguments of its operator, and an argument with those of the caller.
//
// Immutable; const methods may be called from several threads. Refers to the step.
class DataFlow {
 public:
  explicit DataFlow(const RecordedStep& step);

  struct Use {
    TensorId tensor;         // what the file says of it
    StorageVersion version;  // kNone: undefined tensor
  };

  // The tensors among a node's arguments and results, lists flattened, in order. Behind the
  // arguments comes for each argument that is a storage (`set_`) the first result, which lies in
  // it.
  std::span<const Use> inputs(NodeId node) const;
  std::span<const Use> outputs(NodeId node) const;

  struct Version {
    // The operator that made the memory, or during which it was first seen; kNone: it was there
    // before the step, or came from outside of any operator.
    NodeId origin;
    // A gradient that the step leaves behind: it lives until the next step's zero_grad.
    bool kept_as_gradient = false;
    uint32_t made_at = 0;     // position in the step where it was made or first seen
    uint32_t held_until = 0;  // position up to which something held it
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
