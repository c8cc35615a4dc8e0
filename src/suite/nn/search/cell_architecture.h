#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/random_stream.h"

namespace etude::suite {

enum class CellActivation : uint8_t { kTanh, kRelu, kIdentity, kSigmoid };
constexpr int64_t kCellActivations = 4;

// A node of a recurrent cell. The first one reads the word and the state before it; each other one
// reads `previous`, the number of an earlier node.
struct CellNode {
  int64_t previous = 0;
  CellActivation activation = CellActivation::kTanh;

  bool operator==(const CellNode&) const = default;
};

// The nodes of a recurrent cell (Pham et al., 1802.03268). Its result is the mean of the loose
// ends, the nodes that no other one reads.
using CellArchitecture = std::vector<CellNode>;

std::vector<int64_t> LooseEnds(const CellArchitecture& cell);
// Returns "1 tanh; 2 relu of 1; 3 identity of 1", with nodes numbered from 1.
std::string ToText(const CellArchitecture& cell);
// Draws a cell; all are equally likely.
CellArchitecture DrawCell(int64_t nodes, RandomStream& random);

}  // namespace etude::suite
