#include "src/trace/stats.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(Stats, TheTableIsInTheOrderOfTheEnumeration) {
  for (size_t i = 0; i < kStatCount; ++i) {
    EXPECT_EQ(static_cast<size_t>(StatTable()[i].stat), i);
    EXPECT_FALSE(StatTable()[i].name.empty());
    EXPECT_FALSE(StatTable()[i].help.empty());
  }
}

}  // namespace
}  // namespace etude
