#include "src/replay/values/gradients_to_come.h"

#include <gtest/gtest.h>

#include <vector>

#include "src/analysis/memory/autograd_nodes.h"
#include "src/run/test_support.h"

namespace etude {
namespace {

using testing_support::Flow;
using testing_support::MadeUpStep;

const char kAddInPlace[] = "aten::add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)";

ReplayPlan PlanOf(const Flow& flow) {
  ReplayPlan plan = PlanReplay(flow.step, flow.flow, flow.step.top_operators()).value();
  PlanGradients(flow.step, flow.flow, MadeAutogradNodes(flow.step), plan);
  return plan;
}

// Data 10, a parameter 11, a mask 30 made on the way.
void AddForward(MadeUpStep& made) {
  made.SetSequence(1);
  made.Add(10, 11, 20);
  made.SetSequence(2);
  made.Add(10, 10, 30);  // no gradient
  made.Add(20, 30, 21);
  made.Label("AddBackward0", {}, made.Label("autograd::engine::evaluate_function: AddBackward0"));
}

TEST(GradientsToCome, AreThoseOfParametersAndOfWhatIsMadeOfThem) {
  MadeUpStep made;
  AddForward(made);
  made.SetSequence(-1);
  made.Op(kAddInPlace, {11, 12}, {11});  // the optimizer
  const ReplayPlan plan = PlanOf(Flow(made));
  ASSERT_EQ(plan.ops.size(), 4u);
  EXPECT_EQ(plan.ops[0].differentiated, std::vector<SlotId>{plan.ops[0].inputs[1]});
  EXPECT_TRUE(plan.ops[1].differentiated.empty());
  EXPECT_EQ(plan.ops[2].differentiated, std::vector<SlotId>{plan.ops[2].inputs[0]});
  EXPECT_TRUE(plan.ops[3].differentiated.empty());
}

TEST(GradientsToCome, WithoutAnOptimizerAllFromOutsideMayBeParameters) {
  MadeUpStep made;
  AddForward(made);
  const ReplayPlan plan = PlanOf(Flow(made));
  ASSERT_EQ(plan.ops.size(), 3u);
  EXPECT_EQ(plan.ops[0].differentiated, plan.ops[0].inputs);
  EXPECT_TRUE(plan.ops[1].differentiated.empty());
}

TEST(GradientsToCome, WhatIsWrittenToHasOneAfterwards) {
  MadeUpStep made;
  made.Add(10, 10, 20);
  made.SetSequence(1);
  made.Op(kAddInPlace, {20, 11}, {20});
  made.SetSequence(2);
  made.Add(20, 10, 21);
  made.Label("AddBackward0", {}, made.Label("autograd::engine::evaluate_function: AddBackward0"));
  made.SetSequence(-1);
  made.Op(kAddInPlace, {11, 12}, {11});
  const ReplayPlan plan = PlanOf(Flow(made));
  ASSERT_EQ(plan.ops.size(), 4u);
  EXPECT_EQ(plan.ops[1].differentiated, std::vector<SlotId>{plan.ops[1].inputs[1]});
  EXPECT_EQ(plan.ops[2].differentiated, std::vector<SlotId>{plan.ops[2].inputs[0]});
}

TEST(GradientsToCome, WhereNoArgumentIsKnownToHaveOneAllHave) {
  MadeUpStep made;
  made.SetSequence(1);
  const uint64_t function = made.Label("Exp");  // torch.autograd.Function
  made.SetSequence(-1);
  made.Add(10, 11, 20, function);
  made.SetSequence(2);
  made.Add(20, 12, 21);
  made.SetSequence(3);
  made.Add(21, 12, 22);  // makes no nodes
  made.Add(10, 11, 23);  // node 3
  made.Label("AddBackward0", {}, made.Label("autograd::engine::evaluate_function: AddBackward0"));
  made.SetSequence(-1);
  made.Op(kAddInPlace, {11, 13}, {11});
  const ReplayPlan plan = PlanOf(Flow(made));
  ASSERT_EQ(plan.ops.size(), 5u);
  EXPECT_TRUE(plan.ops[0].differentiated.empty());
  EXPECT_EQ(plan.ops[1].differentiated, plan.ops[1].inputs);
  EXPECT_TRUE(plan.ops[2].differentiated.empty());
  EXPECT_EQ(plan.ops[3].differentiated, std::vector<SlotId>{plan.ops[3].inputs[1]});
}

}  // namespace
}  // namespace etude
