#include "src/sim/collective/group_place.h"

#include <algorithm>
#include <set>
#include <utility>

namespace etude {

GroupPlace PlaceOfGroup(const Travel& travel, size_t dims, std::span<const int64_t> members) {
  std::vector<std::vector<int64_t>> grid(dims);
  size_t combinations = 1;
  size_t wide = 0;  // dimensions in which members differ
  GroupPlace place;
  for (size_t dim = 0; dim < dims; ++dim) {
    std::set<int64_t> coordinates;
    for (const int64_t member : members) coordinates.insert(travel.Coordinate(member, dim));
    grid[dim].assign(coordinates.begin(), coordinates.end());
    combinations *= coordinates.size();
    if (combinations > members.size()) return {};
    if (coordinates.size() < 2) continue;
    ++wide;
    place.line = dim;
  }
  if (wide == 1) return place;
  place.line.reset();
  // Different members have different coordinates, so no combination is missing.
  if (wide > 1 && combinations == members.size()) place.grid = std::move(grid);
  return place;
}

bool GroupsUseDims(const SimMachine& machine, AlgorithmChoices choices, CollectiveType type) {
  if (machine.graph == nullptr) return false;
  if (IsWhole(choices)) return false;
  if (OwnAlgorithm(type)) return true;
  return choices != nullptr && choices->size() >= machine.dims.size();
}

}  // namespace etude
