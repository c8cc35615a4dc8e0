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

// Names of tensors and of their memory in a composed trace, so that what is read is what was
// written in the same run of a part, or before: memory that a part makes is new in each of its
// repetitions, and what it reads from outside (parameters, states) is the same in all, and for all
// parts of a trace. Traces share none.
class MemoryNames {
 public:
  // Memory that a part makes.
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
  // Of a use in the current repetition; `version` kNone: what it lies in is not known.
  Names Of(const TensorUse& use, StorageVersion version);
  // The same of communication that works on memory of its own, which is new in each repetition.
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
  Table storages_;  // by trace and version: the name that holds now
  Table renewed_;   // … of this repetition
  Table unknown_;   // of this repetition, by the file's tensor and storage
  Table apart_;     // of this repetition, by version, or by the file's storage
  Table tensors_;   // by name of the storage and the file's name of the tensor
};

}  // namespace etude
