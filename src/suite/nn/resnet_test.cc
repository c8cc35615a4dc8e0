#include "src/suite/nn/resnet.h"

#include <gtest/gtest.h>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

// Returns the maximum difference between the outputs of a picture alone and next to another one.
double EffectOfNeighbours(const ResNet& net) {
  const at::Tensor pictures = Normal({2, 3, 16, 16}, 0, 1);
  return (net(pictures)[0] - net(pictures.narrow(0, 0, 1))[0]).abs().max().item<double>();
}

TEST(ResNet, FixedNormsTakeNothingFromTheBatchAndAreNotLearned) {
  SeedTorch(1);
  const ResNetShape shape = {.width = 4, .blocks = {1, 1}};
  Weights free_weights(at::kCPU);
  const ResNet free(Scope(free_weights), shape);
  EXPECT_GT(EffectOfNeighbours(free), 0.1);

  ResNetShape fixed_shape = shape;
  fixed_shape.fixed_norms = true;
  Weights weights(at::kCPU);
  const ResNet fixed(Scope(weights), fixed_shape);
  EXPECT_LT(EffectOfNeighbours(fixed), 1e-4);
  fixed(Normal({2, 3, 16, 16}, 0, 1)).sum().backward();
  EXPECT_EQ(weights.ParameterCount(), free_weights.ParameterCount());
  for (const Weights::Entry& entry : weights.entries()) {
    const bool is_norm = entry.value.dim() == 1;
    if (entry.is_parameter) {
      EXPECT_EQ(entry.value.grad().defined(), !is_norm) << entry.name;
    } else {
      const double start = entry.name.ends_with("var") ? 1 : 0;
      EXPECT_EQ(entry.value.sub(start).abs().max().item<double>(), 0) << entry.name;
    }
  }
}

}  // namespace
}  // namespace etude::suite
