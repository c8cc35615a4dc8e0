#include "src/trace/job/mesh.h"

#include <gtest/gtest.h>

#include <vector>

namespace etude {
namespace {

using Ranks = std::vector<int64_t>;

Mesh MakeMesh() { return Mesh::Make({{"dp", 2}, {"tp", 3}, {"pp", 4}}).value(); }

TEST(Mesh, NumbersRanks) {
  const Mesh mesh = MakeMesh();
  EXPECT_EQ(mesh.size(), 24);
  EXPECT_EQ(mesh.Stride(2), 6);
  // Rank 17 = 1 + 2 * (2 + 3 * 2).
  EXPECT_EQ(mesh.Coordinate(17, 0), 1);
  EXPECT_EQ(mesh.Coordinate(17, 1), 2);
  EXPECT_EQ(mesh.Coordinate(17, 2), 2);
  EXPECT_EQ(mesh.RankAt(Ranks{1, 2, 2}), 17);
}

TEST(Mesh, GroupsDifferAlongTheirAxesOnly) {
  const Mesh mesh = MakeMesh();
  const AxisSet tp = 0b010;
  EXPECT_EQ(mesh.GroupSize(tp), 3);
  EXPECT_EQ(mesh.GroupCount(tp), 8);
  EXPECT_EQ(mesh.GroupOf(17, tp), 5);  // dp 1, pp 2: 1 + 2 * 2
  EXPECT_EQ(mesh.GroupRanks(5, tp), (Ranks{13, 15, 17}));
  const AxisSet dp_and_pp = 0b101;
  EXPECT_EQ(mesh.GroupRanks(1, dp_and_pp), (Ranks{2, 3, 8, 9, 14, 15, 20, 21}));
  EXPECT_EQ(mesh.GroupRanks(0, 0b111).size(), 24u);
  EXPECT_EQ(mesh.GroupRanks(7, 0), (Ranks{7}));
  for (const AxisSet axes : {0u, 1u, 2u, 5u, 6u, 7u}) {
    int64_t first = -1;
    for (int64_t group = 0; group < mesh.GroupCount(axes); ++group) {
      const Ranks ranks = mesh.GroupRanks(group, axes);
      EXPECT_GT(ranks.front(), first) << "groups are numbered by their first ranks";
      first = ranks.front();
      for (const int64_t rank : ranks) EXPECT_EQ(mesh.GroupOf(rank, axes), group);
    }
  }
}

TEST(Mesh, ShiftsAroundTheEnds) {
  const Mesh mesh = MakeMesh();
  EXPECT_EQ(mesh.Shift(17, Ranks{0, 0, 1}), 23);
  EXPECT_EQ(mesh.Shift(23, Ranks{0, 0, 1}), 5);
  EXPECT_EQ(mesh.Shift(5, Ranks{0, 0, -1}), 23);
  EXPECT_EQ(mesh.Shift(17, Ranks{1, 1}), 12);
  EXPECT_EQ(mesh.Shift(3, Ranks{}), 3);
}

TEST(Mesh, RefusesWhatIsNone) {
  const auto fault = [](std::vector<MeshAxis> axes) {
    const auto mesh = Mesh::Make(std::move(axes));
    return mesh ? "" : mesh.error().message;
  };
  EXPECT_EQ(fault({{"dp", 2}, {"dp", 2}}), "found axis 'dp', expected names of axes that differ");
  EXPECT_EQ(fault({{"dp", 0}}), "found axis 'dp' of 0 ranks, expected 1 or more");
  EXPECT_EQ(fault({{"a", 1 << 20}, {"b", 1 << 20}}), "found a mesh of more than 2147483648 ranks");
  EXPECT_EQ(fault(std::vector<MeshAxis>(17)), "found a mesh of 17 axes, expected at most 16");
}

}  // namespace
}  // namespace etude
