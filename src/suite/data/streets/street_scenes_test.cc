#include "src/suite/data/streets/street_scenes.h"

#include <gtest/gtest.h>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

TEST(StreetScenes, AreAFunctionOfTheSeed) {
  const StreetScenes scenes = DrawStreetScenes(20, 3);
  EXPECT_TRUE(scenes.pictures.equal(DrawStreetScenes(20, 3).pictures));
  EXPECT_FALSE(scenes.classes.equal(DrawStreetScenes(20, 4).classes));
  EXPECT_GE(scenes.pictures.min().item<float>(), -1);
  EXPECT_LE(scenes.pictures.max().item<float>(), 1);
  EXPECT_EQ(scenes.classes.flatten().bincount().numel(), std::ssize(StreetScenes::Colours()));
}

TEST(StreetScenes, ClassesDifferInColour) {
  const StreetScenes scenes = DrawStreetScenes(50, 3);
  // The sky is bluer than red, trees are greener than blue.
  const auto mean = [&](int64_t kind, int64_t part) {
    return scenes.pictures.select(1, part)
        .masked_select(scenes.classes.eq(kind))
        .mean()
        .item<float>();
  };
  EXPECT_GT(mean(0, 2), mean(0, 0) + 0.3F);
  EXPECT_GT(mean(2, 1), mean(2, 2) + 0.3F);
}

TEST(LabelPalette, ReadsWhatItPaints) {
  const LabelPalette palette(CityscapesColours());
  const at::Tensor classes = Arange(palette.classes()).view({1, 4, 5});
  const at::Tensor picture = palette.Paint(classes);
  EXPECT_EQ(picture.sizes(), (std::vector<int64_t>{1, 3, 4, 5}));
  EXPECT_TRUE(palette.Read(picture).equal(classes));
  EXPECT_TRUE(palette.Read(picture + 0.02).equal(classes));
  // Road, in Cityscapes' colour.
  EXPECT_FLOAT_EQ(picture[0][1][0][0].item<float>(), 64 / 127.5F - 1);
}

}  // namespace
}  // namespace etude::suite
