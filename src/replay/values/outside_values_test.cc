#include "src/replay/values/outside_values.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/run/test_support.h"

namespace etude {
namespace {

using testing_support::Flow;
using testing_support::kInteger;
using testing_support::MadeUpStep;

TEST(FillRules, AnIndexIsValidWhereItComesFrom) {
  MadeUpStep made;
  const uint64_t copy = made.Op("aten::clone(Tensor self) -> Tensor", {kInteger}, {kInteger + 1});
  const uint64_t look =
      made.Op("aten::embedding(Tensor weight, Tensor indices) -> Tensor", {10, kInteger + 1}, {20});
  const uint64_t add = made.Add(11, 20, 22);
  const Flow flow(made);
  const std::vector<FillRule> rules = InferFillRules(flow.step, flow.flow).of_versions;
  const FillRule below_four = {FillRule::Kind::kIndex, 0, 4};
  EXPECT_EQ(rules[flow.Read(copy, 0).index()], below_four);
  EXPECT_EQ(rules[flow.Read(look, 1).index()], below_four);
  EXPECT_EQ(rules[flow.Read(add, 0).index()].kind, FillRule::Kind::kDefault);
}

TEST(FillRules, OfASumThatIsAnIndexOneTermIsValidAndTheOtherNothing) {
  MadeUpStep made;
  const uint64_t sum = made.Op("aten::add.Tensor(Tensor self, Tensor other) -> Tensor",
                               {kInteger, kInteger + 1}, {kInteger + 2});
  made.Op("aten::embedding(Tensor weight, Tensor indices) -> Tensor", {10, kInteger + 2}, {20});
  const Flow flow(made);
  const std::vector<FillRule> rules = InferFillRules(flow.step, flow.flow).of_versions;
  const FillRule below_four = {FillRule::Kind::kIndex, 0, 4};
  const FillRule nothing = {FillRule::Kind::kConstant, 0, 0};
  EXPECT_EQ(rules[flow.Read(sum, 0).index()], below_four);
  EXPECT_EQ(rules[flow.Read(sum, 1).index()], nothing);
}

TEST(FillRules, WhatARootIsTakenOfIsMadeOfWhatIsPositive) {
  MadeUpStep made;
  const std::string div = "aten::div.Tensor(Tensor self, Tensor other) -> Tensor";
  const std::string mul = "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor";
  const std::string sqrt = "aten::sqrt(Tensor self) -> Tensor";
  const uint64_t sum = made.Add(10, 11, 12);
  const uint64_t ratio = made.Op(div, {12, 13}, {14});
  made.Op(sqrt, {14}, {15});
  const uint64_t square = made.Op(mul, {16, 16}, {17});
  made.Op(sqrt, {17}, {18});
  const uint64_t other = made.Op(mul, {19, 20}, {21});
  const uint64_t rest =
      made.Op("aten::rsub.Scalar(Tensor self, Scalar other) -> Tensor", {22}, {23});
  made.Op(sqrt, {23}, {24});
  const Flow flow(made);
  const std::vector<FillRule> rules = InferFillRules(flow.step, flow.flow).of_versions;
  const auto kind = [&](uint64_t id, size_t i) { return rules[flow.Read(id, i).index()].kind; };
  EXPECT_EQ(kind(sum, 0), FillRule::Kind::kPositive);
  EXPECT_EQ(kind(sum, 1), FillRule::Kind::kDefault) << "what is added to it, an epsilon or a part";
  EXPECT_EQ(kind(ratio, 1), FillRule::Kind::kPositive);
  EXPECT_EQ(kind(square, 0), FillRule::Kind::kDefault) << "squares are positive";
  EXPECT_EQ(kind(rest, 0), FillRule::Kind::kPositive) << "below 1";
  EXPECT_EQ(kind(other, 0), FillRule::Kind::kDefault) << "no root is taken of it";
}

}  // namespace
}  // namespace etude
