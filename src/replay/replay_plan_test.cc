#include "src/replay/replay_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/run/test_support.h"

namespace etude {
namespace {

using testing_support::Flow;
using testing_support::MadeUpStep;

TEST(ReplayPlan, FreesAResultAfterItsLastReader) {
  MadeUpStep made;
  made.Add(10, 11, 20);
  made.Add(20, 10, 21);
  made.Add(21, 11, 22);
  const Flow flow(made);
  const ReplayPlan plan = PlanReplay(flow.step, flow.flow, flow.step.top_operators()).value();
  ASSERT_EQ(plan.ops.size(), 3u);
  EXPECT_EQ(plan.outside.size(), 2u);
  EXPECT_EQ(plan.outside_bytes, 32);
  // The second operator reads the first one's result, and frees it.
  const SlotId slot = plan.ops[0].results[0];
  ASSERT_TRUE(slot);
  EXPECT_EQ(plan.ops[1].inputs[0], slot);
  EXPECT_TRUE(plan.ops[0].release.empty());
  EXPECT_EQ(plan.ops[1].release, std::vector<SlotId>{slot});
  // Two outside tensors, one result being read and one being made.
  EXPECT_EQ(plan.peak_bytes, 64);
}

// As in a GAN: the generator's backward pass adds to the gradients left by the discriminator's
// step.
TEST(ReplayPlan, KeepsAGradientThatIsAddedToAfterAnothersZeroGrad) {
  const std::string detach = "aten::detach(Tensor(a) self) -> Tensor(a)";
  const std::string add = "aten::add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)";
  MadeUpStep made;
  made.Label("Optimizer.zero_grad#Adam.zero_grad");
  made.Add(10, 11, 20);
  made.Accumulate(20, detach, {20}, 20);
  made.Label("Optimizer.zero_grad#Adam.zero_grad");
  made.Add(10, 11, 30);
  const uint64_t adds = made.Accumulate(30, add, {20, 30}, 20);
  const Flow flow(made);
  const StorageVersion kept = flow.Read(adds, 0);
  EXPECT_TRUE(flow.flow.version(kept).kept_as_gradient);
  EXPECT_FALSE(flow.flow.version(flow.Read(adds, 1)).kept_as_gradient);  // added, then freed

  const ReplayPlan plan = PlanReplay(flow.step, flow.flow, flow.step.top_operators()).value();
  ASSERT_EQ(plan.ops.size(), 4u);
  for (size_t i = 1; i < plan.ops.size(); ++i) EXPECT_TRUE(plan.ops[i].release_before.empty());
  EXPECT_TRUE(plan.release_at_end.empty());
  // The next step's first zero_grad frees it.
  ASSERT_EQ(plan.ops[0].release_before.size(), 1u);
  EXPECT_EQ(plan.slots[plan.ops[0].release_before[0].index()].version, kept);
}

TEST(ReplayPlan, GivesValuesRightBeforeTheOperatorThatDemandsThem) {
  MadeUpStep made;
  made.Add(10, 11, 20);
  made.Add(20, 10, 21);
  const uint64_t reader = made.Add(20, 21, 22);
  const Flow flow(made);
  const NodeId node = flow.step.top_operators()[2];
  const DataFlow::Use computed = flow.flow.inputs(node)[0];
  const DataFlow::Use outside = flow.flow.inputs(flow.step.top_operators()[0])[0];
  const std::vector<GivenValues> given = {
      {node, computed.version, computed.tensor},
      {flow.step.top_operators()[0], outside.version, outside.tensor}};
  const ReplayPlan plan =
      PlanReplay(flow.step, flow.flow, flow.step.top_operators(), given).value();
  EXPECT_EQ(flow.Read(reader, 0), computed.version);
  EXPECT_TRUE(plan.ops[0].given.empty()) << "what comes from outside has its values";
  ASSERT_EQ(plan.ops[2].given.size(), 1u);
  EXPECT_EQ(plan.ops[2].given[0].to, plan.ops[2].inputs[0]);
  ASSERT_EQ(plan.outside.size(), 3u);
  EXPECT_EQ(plan.outside[2].slots, std::vector<SlotId>{plan.ops[2].given[0].from});
  EXPECT_EQ(plan.outside[2].bytes, 16);
}

TEST(ReplayPlan, CountsWhatTheStepChangesOfOutsideMemory) {
  MadeUpStep made;
  made.Op("aten::add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", {10, 11}, {10});
  const Flow flow(made);
  const ReplayPlan plan = PlanReplay(flow.step, flow.flow, flow.step.top_operators()).value();
  EXPECT_EQ(plan.outside_bytes, 32);
  EXPECT_EQ(plan.written_bytes, 16);
}

}  // namespace
}  // namespace etude
