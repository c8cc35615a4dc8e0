#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/trace/job/motifs.h"

namespace etude {

// How far back the references of nodes are expected to go, in nodes: inside a motif that is there
// again, as far as the first time. Nodes and their references come in the order of the program.
class ReferenceForecast {
 public:
  // Of a sound program that stands for as many nodes as there will be.
  explicit ReferenceForecast(const MotifProgram& program);

  void BeginNode() { begins_.push_back(distances_.size()); }
  // Of the next reference of the node; nullopt: nothing is known of it.
  std::optional<uint64_t> Expected() const;
  // Forwards it is a negative number, in two's complement.
  void Add(uint64_t distance) { distances_.push_back(distance); }

 private:
  // The outermost motif around a node that is there again: where it is the first time, and the same
  // node there. It has no nodes if there is none.
  struct Earlier {
    size_t begin = 0;
    size_t end = 0;
    size_t node = 0;
  };

  std::vector<Earlier> earlier_;  // by node
  std::vector<size_t> begins_;    // by node so far: where its references begin
  std::vector<uint64_t> distances_;
};

}  // namespace etude
