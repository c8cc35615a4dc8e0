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

// The ring, tree or exchange that a phase of a collective uses.
struct PhaseMembers {
  const std::vector<int64_t>* listed = nullptr;  // nullptr: base, base + stride …
  int64_t base = 0;
  int64_t stride = 1;
  int64_t count = 1;
  int64_t me = 0;  // index

  int64_t RankAt(int64_t index) const {
    if (listed != nullptr) return (*listed)[static_cast<size_t>(index)];
    return base + index * stride;
  }
};

// What a chunk of a collective goes through one after the other.
struct CollectivePhase {
  CollectiveType type = CollectiveType::kUnknown;
  AlgorithmChoice choice;
  size_t dim = 0;
  bool in_group = false;
  int64_t bytes = 0;
  PhaseMembers members;
  SimIndex queue = 0;
  bool backward = false;  // around the ring
  int64_t root = 0;       // index of members, of a binomial tree
  bool mirrored = false;  // the second of two trees
};

// Whose turn it is in a rank, by dimension.
struct QueueTurns {
  explicit QueueTurns(size_t dims) : any(dims), up(dims), down(dims) {}

  std::vector<SimIndex> any;
  std::vector<SimIndex> up;    // of reduce-scatters and all-reduces of aware ones
  std::vector<SimIndex> down;  // of all-gathers behind them
  // Whether the second tree is next, of collectives of all ranks, by their type.
  std::map<std::pair<CollectiveType, size_t>, bool> second_tree;
};

// A collective that a rank begins.
struct CollectiveCall {
  CollectiveType type = CollectiveType::kUnknown;
  uint32_t dims = 0;  // that it uses, a bit each
  int64_t bytes = 0;  // at least 0
  int64_t rank = 0;
  const std::vector<int64_t>* group = nullptr;  // nullptr: all ranks
  int64_t me = 0;                               // index in the group
  int64_t members = 0;
  int64_t root = 0;    // index in the group
  int64_t stream = 0;  // number of the chunk among those of all ranks, or of the group
};

// How a collective becomes messages: into which chunks, and what these go through.
class SimCollectiveModel {
 public:
  struct Chunks {
    int64_t bytes = 0;  // of each
    int64_t count = 0;
  };

  virtual ~SimCollectiveModel() = default;
  virtual std::string_view name() const = 0;
  // Whether collectives of this type are known.
  virtual bool Has(CollectiveType type) const = 0;
  virtual Chunks ChunksOf(const CollectiveCall& call) const = 0;
  // Of the next chunk; none: it takes no time. kBadInput for an algorithm that does not fit.
  virtual Status MakePhases(const CollectiveCall& call, int64_t bytes, QueueTurns& turns,
                            std::vector<CollectivePhase>& phases) const = 0;
};

// "astra-sim-2.0/phases".
std::unique_ptr<SimCollectiveModel> MakeSimCollectiveModel(const SimInput& input);

}  // namespace etude
