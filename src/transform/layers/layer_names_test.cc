#include "src/transform/layers/layer_names.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(LayerNames, TheNumberOfALayerChanges) {
  LayerNames names(2);
  names.Add(0, "nn.Module: Net.2.blocks.4.fc (Linear)");
  names.Add(1, "nn.Module: Net.2.blocks.5.fc (Linear)");
  EXPECT_EQ(names.Of("nn.Module: Net.2.blocks.4.fc (Linear)", 0, 7),
            "nn.Module: Net.2.blocks.11.fc (Linear)");
  EXPECT_EQ(names.Of("nn.Module: Net.2.blocks.5.fc (Linear)", 1, 2),
            "nn.Module: Net.2.blocks.6.fc (Linear)");
}

TEST(LayerNames, NumbersOfLayersMayBeApart) {
  LayerNames names(2);
  names.Add(0, "nn.Module: Net.1 (Linear)");
  names.Add(0, "nn.Module: Net.2 (ReLU)");
  names.Add(1, "nn.Module: Net.3 (Linear)");
  names.Add(1, "nn.Module: Net.4 (ReLU)");
  EXPECT_EQ(names.Of("nn.Module: Net.1 (Linear)", 0, 2), "nn.Module: Net.5 (Linear)");
  EXPECT_EQ(names.Of("nn.Module: Net.4 (ReLU)", 1, 3), "nn.Module: Net.8 (ReLU)");
}

TEST(LayerNames, OtherNamesStay) {
  LayerNames names(2);
  names.Add(0, "nn.Module: Net.norm (LayerNorm)");
  names.Add(1, "nn.Module: Net.norm (LayerNorm)");
  EXPECT_EQ(names.Of("nn.Module: Net.norm (LayerNorm)", 0, 3), "nn.Module: Net.norm (LayerNorm)");
  EXPECT_EQ(names.Of("nn.Module: Net.0 (Linear)", 0, 3), "nn.Module: Net.0 (Linear)")
      << "no other layer has such a name";
}

}  // namespace
}  // namespace etude
