#include "src/suite/nn/weights.h"

#include <gtest/gtest.h>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

TEST(Weights, WhatIsBelowAPlaceHasItsNamesThere) {
  Weights weights(at::kCPU);
  const Scope root(weights);
  const at::Tensor inner = root["trunk"]["conv"].Parameter("weight", Zeros({2}));
  root["trunk"].Buffer("mean", Zeros({1}));
  root["trunks"].Parameter("weight", Zeros({1}));
  root.Parameter("trunk", Zeros({1}));
  const auto found = weights.Below("trunk");
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0].first, "conv.weight");
  EXPECT_TRUE(found[0].second.is_same(inner));
  EXPECT_EQ(found[1].first, "mean");
}

}  // namespace
}  // namespace etude::suite
