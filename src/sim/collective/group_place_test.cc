#include "src/sim/collective/group_place.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

// NPU x + 4 y + 8 z, for 4 × 2 × 3 NPUs.
SimMachine CuboidMachine() {
  SimMachine machine;
  for (const int64_t npus : {4, 2, 3}) {
    machine.dims.push_back({.shape = NetworkShape::kGraph, .npus = npus});
  }
  return machine;
}

using Grid = std::vector<std::vector<int64_t>>;

GroupPlace PlaceOf(const std::vector<int64_t>& members) {
  const SimMachine machine = CuboidMachine();
  return PlaceOfGroup(Travel(machine), machine.dims.size(), members);
}

TEST(GroupPlace, LinesGridsAndOthers) {
  EXPECT_EQ(PlaceOf({0, 1, 3}).line, 0U);
  EXPECT_EQ(PlaceOf({2, 6}).line, 1U);
  EXPECT_EQ(PlaceOf({21, 5, 13}).line, 2U);
  EXPECT_TRUE(PlaceOf({21, 5, 13}).grid.empty());
  EXPECT_EQ(PlaceOf({5}).line, std::nullopt);
  // In any order.
  EXPECT_EQ(PlaceOf({16, 3, 19, 0}).grid, (Grid{{0, 3}, {0}, {0, 2}}));
  EXPECT_EQ(PlaceOf({16, 3, 19, 0}).line, std::nullopt);
  EXPECT_EQ(PlaceOf({0, 4, 8, 12, 16, 20}).grid, (Grid{{0}, {0, 1}, {0, 1, 2}}));
  // A member is missing, or elsewhere.
  for (const auto& members : {std::vector<int64_t>{16, 3, 19}, {0, 5}, {0, 1, 4, 5, 8}}) {
    EXPECT_TRUE(PlaceOf(members).grid.empty());
    EXPECT_EQ(PlaceOf(members).line, std::nullopt);
  }
}

}  // namespace
}  // namespace etude
