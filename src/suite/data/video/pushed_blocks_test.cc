#include "src/suite/data/video/pushed_blocks.h"

#include <gtest/gtest.h>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

TEST(PushedBlocks, AreAFunctionOfTheSeed) {
  const PushSequences videos = GeneratePushes(5, 3);
  EXPECT_EQ(videos.frames.sizes(), (std::vector<int64_t>{5, 10, 3, 32, 32}));
  EXPECT_TRUE(videos.frames.equal(GeneratePushes(5, 3).frames));
  EXPECT_FALSE(videos.frames.equal(GeneratePushes(5, 4).frames));
}

TEST(PushedBlocks, TheGripperMovesAsCommandedUnlessItIsStopped) {
  const PushSequences videos = GeneratePushes(200, 3);
  const at::Tensor moved = (videos.states.slice(1, 1, 10) - videos.states.slice(1, 0, 9)) * 8;
  const at::Tensor error = (moved - videos.actions.slice(1, 0, 9)).abs().amax({2});
  const double stopped = error.gt(1e-5).to(at::kFloat).mean().item<double>();
  EXPECT_GT(stopped, 0.01);
  EXPECT_LT(stopped, 0.3);
  EXPECT_LE(videos.actions.abs().max().item<float>(), 1);
  EXPECT_LT(videos.states.abs().max().item<float>(), 1);
}

// The gripper's middle has its colour; blocks are moved.
TEST(PushedBlocks, PicturesShowTheGripper) {
  const PushSequences videos = GeneratePushes(50, 3);
  const at::Tensor places = ((videos.states + 1) * 16).floor().to(at::kLong);
  const at::Tensor index = places.select(2, 1) * 32 + places.select(2, 0);
  const at::Tensor pixels =
      videos.frames.flatten(3).gather(3, index.unsqueeze(2).unsqueeze(3).expand({-1, -1, 3, 1}));
  EXPECT_EQ(pixels.select(2, 0).min().item<int>(), 235);
  EXPECT_EQ(pixels.select(2, 2).max().item<int>(), 224);
}

}  // namespace
}  // namespace etude::suite
