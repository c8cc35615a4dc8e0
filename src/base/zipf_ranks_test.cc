#include "src/base/zipf_ranks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace etude {
namespace {

TEST(ZipfRanks, AreAsFrequentAsTheLawSays) {
  constexpr int kDraws = 200'000;
  constexpr uint64_t kCount = 12;
  for (const double exponent : {0.0, 0.4, 1.0, 1.0 + 1e-10, 1.7, 4.0}) {
    SCOPED_TRACE(exponent);
    double total = 0;
    for (uint64_t rank = 1; rank <= kCount; ++rank) total += std::pow(rank, -exponent);
    const ZipfRanks ranks(kCount, exponent);
    RandomStream random(7);
    std::vector<int> seen(kCount + 1);
    for (int i = 0; i < kDraws; ++i) {
      const uint64_t rank = ranks.Next(random);
      ASSERT_GE(rank, 1u);
      ASSERT_LE(rank, kCount);
      ++seen[rank];
    }
    for (uint64_t rank = 1; rank <= kCount; ++rank) {
      const double share = std::pow(rank, -exponent) / total;
      const double deviation = std::sqrt(kDraws * share * (1 - share));
      EXPECT_NEAR(seen[rank], kDraws * share, 5 * deviation + 1) << "rank " << rank;
    }
  }
}

}  // namespace
}  // namespace etude
