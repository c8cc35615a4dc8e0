#include "src/base/random_stream.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

namespace etude {
namespace {

// Training records depend on this order.
TEST(Shuffle, GivesTheSameOrderForASeed) {
  std::vector<int64_t> items = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  RandomStream random(1);
  Shuffle(std::span(items), random);
  EXPECT_EQ(items, (std::vector<int64_t>{9, 0, 1, 4, 8, 2, 3, 7, 6, 5}));
}

}  // namespace
}  // namespace etude
