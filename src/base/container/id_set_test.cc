#include "src/base/container/id_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace etude {
namespace {

TEST(IdSet, HoldsWhatWasInserted) {
  std::mt19937_64 random(1);
  for (const uint64_t range : {uint64_t{300}, uint64_t{1} << 20, UINT64_MAX}) {
    IdSet ids;
    std::set<uint64_t> expected;
    for (int i = 0; i < 4000; ++i) {
      const uint64_t id = range == UINT64_MAX ? random() : random() % range + 5'000'000'000;
      ids.Insert(id);
      expected.insert(id);
      for (const uint64_t near : {id - 1, id, id + 1, id + 64, random()}) {
        ASSERT_EQ(ids.Contains(near), expected.contains(near)) << near;
      }
    }
  }
}

TEST(IdSet, TakesTheSmallestAndTheLargest) {
  IdSet ids;
  EXPECT_FALSE(ids.Contains(0));
  EXPECT_FALSE(ids.Contains(UINT64_MAX));
  ids.Insert(UINT64_MAX);
  EXPECT_FALSE(ids.Contains(0));
  ids.Insert(0);
  EXPECT_TRUE(ids.Contains(0));
  EXPECT_TRUE(ids.Contains(UINT64_MAX));
  EXPECT_FALSE(ids.Contains(1));
}

TEST(IdSet, CostsABitPerNeighbourAndABoundedSizePerLoner) {
  IdSet near;
  for (uint64_t id = 0; id < (1 << 20); ++id) near.Insert(id + 77);
  EXPECT_LE(near.memory_bytes(), (1 << 20) / 8 * 2 + 16'384);  // a vector may double
  IdSet far;
  for (uint64_t i = 0; i < 50'000; ++i) far.Insert(i * 1'000'000'007);
  EXPECT_LE(far.memory_bytes(), 50'000u * 43 + 16'384);
}

}  // namespace
}  // namespace etude
