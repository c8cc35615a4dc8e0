#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/sim/engine/sim_input.h"

namespace etude {

// Members of the ring, tree or exchange of one collective phase.
struct PhaseMembers {
  const std::vector<int64_t>* listed = nullptr;  // nullptr: base, base + stride, …
  // Or base + each of these times stride.
  const std::vector<int64_t>* coordinates = nullptr;
  int64_t base = 0;
  int64_t stride = 1;
  int64_t count = 1;
  int64_t me = 0;  // own index

  int64_t RankAt(int64_t index) const {
    if (listed != nullptr) return (*listed)[static_cast<size_t>(index)];
    if (coordinates != nullptr) index = (*coordinates)[static_cast<size_t>(index)];
    return base + index * stride;
  }
};

// One of the consecutive phases of a collective's chunk.
struct CollectivePhase {
  CollectiveType type = CollectiveType::kUnknown;
  AlgorithmChoice choice;
  size_t dim = 0;
  bool in_group = false;
  int64_t bytes = 0;
  PhaseMembers members;
  SimIndex queue = 0;
  bool backward = false;  // around the ring
  int64_t root = 0;       // index among the members, for a binomial tree
  bool mirrored = false;  // the second of two trees
};

// Returns the bytes that a member has after a phase that it begins with `bytes`.
int64_t DataAfter(CollectiveType type, int64_t bytes, int64_t members);

// Next queue of a rank, by dimension (round robin).
struct QueueTurns {
  explicit QueueTurns(size_t dims) : any(dims), up(dims), down(dims) {}

  std::vector<SimIndex> any;
  std::vector<SimIndex> up;    // for reduce-scatters, and all-reduces with bandwidth_aware
  std::vector<SimIndex> down;  // for the all-gathers that follow them
  // Whether the second tree is next, for collectives of all ranks, by type and dimension.
  std::map<std::pair<CollectiveType, size_t>, bool> second_tree;
};

// A collective that a rank starts.
struct CollectiveCall {
  CollectiveType type = CollectiveType::kUnknown;
  uint32_t dims = 0;  // network dimensions used, one bit each
  int64_t bytes = 0;  // at least 0
  int64_t rank = 0;
  const std::vector<int64_t>* group = nullptr;  // nullptr: all ranks
  int64_t me = 0;                               // index in the group
  int64_t members = 0;
  int64_t root = 0;    // index in the group
  int64_t stream = 0;  // number of the chunk among those of all ranks, or of the group
};

// Splits a collective into chunks, and a chunk into phases.
class SimCollectiveModel {
 public:
  struct Chunks {
    int64_t bytes = 0;  // per chunk
    int64_t count = 0;
  };

  virtual ~SimCollectiveModel() = default;
  virtual std::string_view name() const = 0;
  // Returns whether the model supports this collective type.
  virtual bool Has(CollectiveType type) const = 0;
  virtual Chunks ChunksOf(const CollectiveCall& call) const = 0;
  // Makes the phases of the next chunk; none if it takes no time. kBadInput for an algorithm that
  // does not fit.
  virtual Status MakePhases(const CollectiveCall& call, int64_t bytes, QueueTurns& turns,
                            std::vector<CollectivePhase>& phases) const = 0;
};

// Makes the model "astra-sim-2.0/phases".
std::unique_ptr<SimCollectiveModel> MakeSimCollectiveModel(const SimInput& input);

}  // namespace etude
