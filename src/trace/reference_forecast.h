#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/trace/job/motifs.h"

namespace etude {

// Predicts how far back the references of nodes go, in nodes: inside a repeated motif, as far as in
// its first occurrence. Nodes and their references are added in program order.
class ReferenceForecast {
 public:
  // `program` must be sound and expand to as many nodes as will be added.
  explicit ReferenceForecast(const MotifProgram& program);

  void BeginNode() { begins_.push_back(distances_.size()); }
  // Returns the prediction for the next reference of the node; nullopt if there is none.
  std::optional<uint64_t> Expected() const;
  // Adds the distance of the next reference; forward references are negative, in two's complement.
  void Add(uint64_t distance) { distances_.push_back(distance); }

 private:
  // Outermost repeated motif around a node: its first occurrence and the corresponding node in it.
  // Empty if there is none.
  struct Earlier {
    size_t begin = 0;
    size_t end = 0;
    size_t node = 0;
  };

  std::vector<Earlier> earlier_;  // by node
  std::vector<size_t> begins_;    // by node so far: index of its first reference
  std::vector<uint64_t> distances_;
};

}  // namespace etude
