#include "src/sim/sweep/plan_rule.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace etude {
namespace {

PlanRule RuleOf(int64_t ranks) {
  PlanRule rule;
  rule.place = "s.toml:1:1";
  rule.ranks = ranks;
  return rule;
}

uint64_t RefusalsOf(const PlanList& list, const std::string& reason) {
  for (const PlanRefusals& one : list.refusals) {
    if (one.reason == reason) return one.count;
  }
  return 0;
}

// The number of ordered products of three factors of 2^n is (n + 1)(n + 2) / 2.
TEST(PlanRule, AllProductsOfThree) {
  const auto eight = ListPlans({RuleOf(8)});
  ASSERT_TRUE(eight) << eight.error().message;
  EXPECT_EQ(eight->plans.size(), 10u);
  EXPECT_EQ(eight->combinations, 10u);
  EXPECT_TRUE(eight->refusals.empty());
  for (const PlanChoice& plan : eight->plans) {
    EXPECT_EQ(plan.tensor * plan.context * plan.pipeline * plan.data, 8);
  }
  EXPECT_EQ(PlanLabels(eight->plans).front(), "tp1 pp1 dp8");
  EXPECT_EQ(ListPlans({RuleOf(1024)})->plans.size(), 66u);
}

TEST(PlanRule, ConstraintsAreCounted) {
  PlanRule rule = RuleOf(16);
  rule.devices_per_node = 4;
  rule.global_batch = 24;
  const auto list = ListPlans({rule});
  ASSERT_TRUE(list) << list.error().message;
  // 15 products; tp 8 with 2 of them, tp 16 with 1; dp 16 does not divide 24.
  EXPECT_EQ(list->combinations, 15u);
  EXPECT_EQ(RefusalsOf(*list, "tp exceeds the 4 devices of a node"), 3u);
  EXPECT_EQ(RefusalsOf(*list, "a batch of 24 sequences is not divisible by dp · sequences"), 1u);
  EXPECT_EQ(list->plans.size(), 11u);
  for (const PlanChoice& plan : list->plans) EXPECT_EQ(*plan.micro_batches * plan.data, 24);
}

TEST(PlanRule, ListsOfValues) {
  PlanRule rule = RuleOf(12);
  rule.tensor = {2, 5};
  rule.pipeline = {1, 3};
  rule.expert = {1, 4};
  rule.context = {1, 2};
  const auto list = ListPlans({rule});
  ASSERT_TRUE(list) << list.error().message;
  // tp 5 divides nothing: 4 meshes. dp is 6, 2, 3 and 1; 4 divides none of them.
  EXPECT_EQ(RefusalsOf(*list, "tp · cp · pp does not divide 12 ranks"), 4u);
  EXPECT_EQ(RefusalsOf(*list, "ep does not divide dp"), 4u);
  EXPECT_EQ(list->plans.size(), 4u);
  EXPECT_EQ(PlanLabels(list->plans),
            (std::vector<std::string>{"tp2 cp1 pp1 dp6", "tp2 cp1 pp3 dp2", "tp2 cp2 pp1 dp3",
                                      "tp2 cp2 pp3 dp1"}));
}

TEST(PlanRule, BatchesOfReplicas) {
  PlanRule rule = RuleOf(4);
  rule.tensor = {1};
  rule.pipeline = {2};
  rule.global_batch = 8;
  rule.sequences = {1, 2, 3};
  const auto list = ListPlans({rule});
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ(PlanLabels(list->plans),
            (std::vector<std::string>{"tp1 pp2 dp2 seq1 mb4", "tp1 pp2 dp2 seq2 mb2"}));
}

TEST(PlanRule, DuplicatesOfRulesAreRemoved) {
  PlanRule narrow = RuleOf(8);
  narrow.tensor = {1, 2, 2};
  const auto list = ListPlans({RuleOf(8), narrow});
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ(list->plans.size(), 10u);
  // Four with tp 1, three with tp 2, and the same again.
  EXPECT_EQ(RefusalsOf(*list, "duplicate plan"), 10u);
}

TEST(PlanRule, TooManyAreRefused) {
  PlanRule rule = RuleOf(720'720);
  rule.context = {};
  const auto list = ListPlans({rule});
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().message,
            "s.toml:1:1: plans: found more than 10000 plans, the maximum; list values of tp, pp, "
            "cp, ep or dp, or give devices_per_node or global_batch");
  PlanRule wide = RuleOf(7);
  for (int64_t i = 2; i < 1'002; ++i) {
    if (i != 7) wide.tensor.push_back(i);
    wide.context.push_back(i);
  }
  wide.pipeline = {2, 3};
  const auto none = ListPlans({wide});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("more than 1000000 combinations"), std::string::npos);
}

}  // namespace
}  // namespace etude
