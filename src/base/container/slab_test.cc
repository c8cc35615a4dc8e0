#include "src/base/container/slab.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace etude {
namespace {

TEST(Slab, GivesRemovedRowsAgain) {
  Slab<int> rows;
  std::map<uint32_t, int> expected;
  std::mt19937 random(3);
  size_t most = 0;
  for (int i = 1; i < 50'000; ++i) {
    if (random() % 5 < 3) {
      const uint32_t row = rows.Add();
      ASSERT_EQ(rows[row], 0);
      ASSERT_TRUE(expected.emplace(row, i).second);
      rows[row] = i;
    } else if (!expected.empty()) {
      const auto one = expected.lower_bound(static_cast<uint32_t>(random() % rows.end()));
      const auto gone = one == expected.end() ? expected.begin() : one;
      rows.Remove(gone->first);
      expected.erase(gone);
    }
    most = std::max(most, expected.size());
    ASSERT_EQ(rows.size(), expected.size());
  }
  for (const auto& [row, value] : expected) EXPECT_EQ(rows[row], value);
  EXPECT_EQ(rows.end(), most);
}

}  // namespace
}  // namespace etude
