#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/sim/collective/collective_algorithms.h"
#include "src/sim/machine/machine.h"
#include "src/sim/machine/travel.h"

namespace etude {

// Places of the members of a group in the network.
struct GroupPlace {
  std::optional<size_t> line;  // the only dimension in which the members differ
  // If the members are all combinations of coordinates in several dimensions: the coordinates by
  // dimension, ascending. Empty otherwise.
  std::vector<std::vector<int64_t>> grid;
};

GroupPlace PlaceOfGroup(const Travel& travel, size_t dims, std::span<const int64_t> members);

// Returns whether collectives of groups that form a grid take one dimension after the other, as
// those of all ranks do: on a graph with an algorithm for each dimension.
bool GroupsUseDims(const SimMachine& machine, AlgorithmChoices choices, CollectiveType type);

}  // namespace etude
