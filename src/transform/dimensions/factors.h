#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/base/container/id.h"
#include "src/trace/trace.h"

namespace etude {

struct FactorTag;
// A factor of the sizes of dimensions. Factors with the same meaning, such as the heads of one
// attention in all of its tensors, are united.
using FactorId = Id<FactorTag>;

// A use of a factor by an operator that limits edits of its size.
enum class FactorLimit : uint8_t {
  kWhole,    // it needs the whole dimension, such as a softmax; a rank cannot do a part
  kPart,     // it takes a part that does not divide the dimension, or single places of it
  kUnknown,  // its rules are unknown
};

// Factors of dimensions, which are united and split into smaller ones. A dimension is a list of
// factors, the slowest first, whose product is its size. Factors of 1 are left out. Not
// thread-safe.
class Factors {
 public:
  FactorId Add(int64_t size);
  int64_t size(FactorId factor) const { return nodes_[factor.index()].size; }

  // Appends the finest factors of `factor` as far as it has been split. Equal ids mean united
  // factors.
  void Expand(FactorId factor, std::vector<FactorId>& finest) const;
  std::vector<FactorId> Expand(std::span<const FactorId> factors) const;

  // Unites two lists with the same product. Larger factors are split. Returns false if the
  // products differ or no common split exists; the lists may then be united in part.
  bool Unite(std::span<const FactorId> a, std::span<const FactorId> b);
  // Splits the list so that the product of its last factors is `inner`. Returns false if that is
  // not possible.
  bool SplitAt(std::span<const FactorId> factors, int64_t inner);

  // Notes that an operator limits the finest factors of a list. The first one of each kind stays.
  void Limit(std::span<const FactorId> factors, FactorLimit limit, NodeId by);
  // Returns the operator that limits a finest factor; kNone without one.
  NodeId limit(FactorId factor, FactorLimit limit) const {
    return nodes_[factor.index()].limits[static_cast<size_t>(limit)];
  }

 private:
  struct Node {
    int64_t size = 1;
    uint32_t members = 1;  // factors that it represents
    FactorId united;       // the factor that represents it; kNone: itself
    FactorId outer;        // if it was split: size = outer size * inner size
    FactorId inner;
    std::array<NodeId, 3> limits;  // by kind
  };

  FactorId Find(FactorId factor) const;
  void Split(FactorId root, int64_t inner);
  void UniteRoots(FactorId a, FactorId b);

  std::vector<Node> nodes_;
};

}  // namespace etude
