#include "src/suite/nn/adversarial/cycle_gan.h"

#include <set>

#include <gtest/gtest.h>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

// Pictures that are all of one number each, from `first` on.
at::Tensor Numbered(int64_t first, int64_t count) {
  return (Arange(count) + first).to(at::kFloat).view({count, 1, 1, 1}).expand({count, 3, 2, 2});
}

TEST(ImagePool, GivesPicturesOfEarlierStepsWhenFull) {
  constexpr int64_t kCapacity = 50;
  constexpr int64_t kFresh = 2000;
  Weights weights(at::kCPU);
  SeedTorch(1);
  const Scope root(weights);
  const ImagePool pool(root, kCapacity, /*side=*/2);
  const at::Tensor first = Numbered(0, kCapacity);
  EXPECT_TRUE(pool.Exchange(first).equal(first));

  int64_t old = 0;
  std::set<int64_t> given;
  for (int64_t number = kCapacity; number < kCapacity + kFresh; ++number) {
    const at::Tensor one = pool.Exchange(Numbered(number, 1));
    const auto value = static_cast<int64_t>(one[0][0][0][0].item<float>());
    EXPECT_TRUE(one.eq(static_cast<double>(value)).all().item<bool>());
    EXPECT_LE(value, number);
    EXPECT_TRUE(given.insert(value).second) << value;  // a picture leaves the pool once
    if (value != number) ++old;
  }
  EXPECT_NEAR(static_cast<double>(old) / kFresh, 0.5, 0.05);
  // Those that were not given are in the pool.
  EXPECT_EQ(given.size() + kCapacity, static_cast<size_t>(kFresh + kCapacity));
}

TEST(ImagePool, IsInCheckpoints) {
  Weights weights(at::kCPU);
  const Scope root(weights);
  const ImagePool pool(root["pool"], 3, 2);
  pool.Exchange(Numbered(7, 2));
  for (const Weights::Entry& entry : weights.entries()) {
    EXPECT_FALSE(entry.is_parameter);
  }
  ASSERT_EQ(weights.entries().size(), 2U);
  EXPECT_EQ(weights.entries()[0].name, "pool.pictures");
  EXPECT_EQ(weights.entries()[0].value[1][0][0][0].item<float>(), 8);
  EXPECT_EQ(weights.entries()[1].name, "pool.count");
  EXPECT_EQ(weights.entries()[1].value.item<int64_t>(), 2);
}

TEST(CycleGan, PicturesKeepTheirSizeAndPatchesOverlap) {
  Weights weights(at::kCPU);
  const Scope root(weights);
  const ResNetTranslator translator(root["t"], {.width = 4, .blocks = 1});
  const PatchCritic critic(root["c"], {.width = 4});
  const at::Tensor pictures = Uniform({2, 3, 32, 48}, -1, 1);
  EXPECT_EQ(translator(pictures).sizes(), pictures.sizes());
  EXPECT_LE(translator(pictures).abs().max().item<float>(), 1);
  // Halved three times, and two convolutions without a stride that each take one off.
  EXPECT_EQ(critic(pictures).sizes(), (std::vector<int64_t>{2, 1, 2, 4}));
}

}  // namespace
}  // namespace etude::suite
