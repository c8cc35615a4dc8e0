#include "src/suite/nn/video/cdna.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/core/grad_mode.h>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr int64_t kCdnaVideos = 2;
constexpr int64_t kCdnaTimes = 5;
constexpr int64_t kCdnaSide = 16;
constexpr CdnaShape kSmallCdna = {.side = kCdnaSide,
                                  .channels = 2,
                                  .repeated = 1,
                                  .kernel = 3,
                                  .moved = 2,
                                  .actions = 1,
                                  .states = 1};

// A small network whose answers are set by its biases alone.
class CdnaTest : public testing::Test {
 protected:
  CdnaTest() {
    SeedTorch(1);
    videos_ = {Uniform({kCdnaVideos, kCdnaTimes, 3, kCdnaSide, kCdnaSide}, 0, 1),
               Uniform({kCdnaVideos, kCdnaTimes, 1}, -1, 1),
               Uniform({kCdnaVideos, kCdnaTimes, 1}, -1, 1)};
    for (const std::string_view part : {"masks.weight", "masks.bias", "kernels.weight",
                                        "kernels.bias", "create.weight", "create.bias"}) {
      Find(part).zero_();
    }
  }

  at::Tensor Find(std::string_view name) const {
    return std::ranges::find(weights_.entries(), name, &Weights::Entry::name)->value;
  }
  // Uses one layer of the mixture only: the last frame, the new pixels, or a copy.
  void Choose(int64_t layer) const { Find("masks.bias")[layer].fill_(100); }
  at::Tensor Predict(int64_t context, const at::Tensor& is_true = {}) const {
    return network_(videos_, context, is_true).frames;
  }

  const at::NoGradGuard no_gradients_;
  Weights weights_{at::kCPU};
  Cdna network_{Scope(weights_), kSmallCdna};
  PushSequences videos_;
};

TEST_F(CdnaTest, CopiesTheLastFrame) {
  Choose(0);
  const at::Tensor frames = Predict(2);
  ASSERT_EQ(frames.sizes(),
            (std::vector<int64_t>{kCdnaVideos, kCdnaTimes - 1, 3, kCdnaSide, kCdnaSide}));
  for (int64_t time = 0; time + 1 < kCdnaTimes; ++time) {
    EXPECT_TRUE(
        frames.select(1, time).allclose(videos_.frames.select(1, std::min<int64_t>(time, 1))));
  }
}

TEST_F(CdnaTest, UsesTrueFramesWhereItShould) {
  Choose(0);
  const at::Tensor is_true = Zeros({kCdnaVideos, kCdnaTimes}, at::kBool);
  is_true[1][3].fill_(true);
  const at::Tensor frames = Predict(2, is_true);
  EXPECT_TRUE(frames[0][3].allclose(videos_.frames[0][1]));
  EXPECT_TRUE(frames[1][2].allclose(videos_.frames[1][1]));
  EXPECT_TRUE(frames[1][3].allclose(videos_.frames[1][3]));
}

TEST_F(CdnaTest, MovesAFrameByItsKernel) {
  Choose(3);                              // the second copy
  Find("kernels.bias")[25 + 1].fill_(1);  // two rows up and one column left of the middle
  const at::Tensor moved = Predict(kCdnaTimes).select(1, 0);
  const at::Tensor first = videos_.frames.select(1, 0);
  EXPECT_TRUE(moved.slice(2, 2, kCdnaSide)
                  .slice(3, 1, kCdnaSide)
                  .allclose(first.slice(2, 0, kCdnaSide - 2).slice(3, 0, kCdnaSide - 1)));
  EXPECT_LT(moved.slice(2, 0, 2).abs().max().item<float>(), 1e-6F);
}

TEST_F(CdnaTest, MakesNewPixels) {
  Choose(1);
  Find("create.bias").fill_(-100);
  EXPECT_LT(Predict(2).abs().max().item<float>(), 1e-6F);
}

TEST_F(CdnaTest, KernelsOfNegativeValuesBlur) {
  Choose(2);
  Find("kernels.bias").fill_(-1);
  videos_.frames.fill_(0.5);
  EXPECT_TRUE(Predict(kCdnaTimes)
                  .select(1, 0)
                  .slice(2, 2, -2)
                  .slice(3, 2, -2)
                  .allclose(Full({kCdnaVideos, 3, kCdnaSide - 4, kCdnaSide - 4}, 0.5)));
}

// What an action changes is only known after it.
TEST_F(CdnaTest, PredictsWithoutLookingAhead) {
  const auto predict = [&] { return network_(videos_, 2, {}); };
  Find("masks.weight").normal_(0, 1);
  const Cdna::Prediction before = predict();
  videos_.actions.select(1, 2).add_(1);
  videos_.frames.select(1, 2).zero_();
  const Cdna::Prediction after = predict();
  EXPECT_TRUE(before.frames.slice(1, 0, 2).equal(after.frames.slice(1, 0, 2)));
  EXPECT_FALSE(before.frames.select(1, 2).equal(after.frames.select(1, 2)));
  EXPECT_TRUE(before.states.slice(1, 0, 2).equal(after.states.slice(1, 0, 2)));
  EXPECT_FALSE(before.states.select(1, 2).equal(after.states.select(1, 2)));
}

}  // namespace
}  // namespace etude::suite
