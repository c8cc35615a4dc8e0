#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/base/container/hash.h"
#include "src/compose/part_plan.h"
#include "src/compose/source_trace.h"

namespace etude {

// Assigns names to tensors and their memory in a composed trace, so that reads refer to earlier
// writes in the same repetition of a part, or before. Memory made by a part is new in each
// repetition. Memory from outside (parameters, states) is the same in all repetitions and all parts
// of a trace. Different traces share no memory.
class MemoryNames {
 public:
  // Memory made by a part.
  class Made {
   public:
    Made(const SourceTrace& source, const PartPlan& plan);
    bool contains(StorageVersion version) const { return made_[version.index()]; }

   private:
    std::vector<bool> made_;  // by version
  };

  // Begins a repetition of a part of trace `trace`.
  void Begin(size_t trace, const Made& made);

  struct Names {
    uint64_t tensor = 0;
    uint64_t storage = 0;
  };
  // Returns the names for a use in the current repetition; `version` kNone: unknown memory.
  Names Of(const TensorUse& use, StorageVersion version);
  // Returns the names for a communication with its own memory, new in each repetition.
  Names Apart(const TensorUse& use, StorageVersion version);

 private:
  struct HashPair {
    size_t operator()(const std::pair<uint64_t, uint64_t>& pair) const {
      return static_cast<size_t>(HashMix(pair.first, pair.second));
    }
  };
  using Table = std::unordered_map<std::pair<uint64_t, uint64_t>, uint64_t, HashPair>;

  uint64_t Named(Table& table, uint64_t a, uint64_t b);

  const Made* made_ = nullptr;
  uint64_t trace_ = 0;
  uint64_t next_ = 1;
  Table storages_;  // by trace and version: the current name
  Table renewed_;   // for this repetition, by trace and version
  Table unknown_;   // for this repetition, by the file's tensor and storage
  Table apart_;     // for this repetition, by version, or by the file's storage
  Table tensors_;   // by the name of the storage and the file's name of the tensor
};

}  // namespace etude
