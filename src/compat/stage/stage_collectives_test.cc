#include "src/compat/stage/stage_collectives.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace etude::stage {
namespace {

using enum Symbol;

Product Over(std::vector<Symbol> over, std::vector<Symbol> under = {}) {
  Product product;
  for (const Symbol symbol : over) ++product[symbol];
  for (const Symbol symbol : under) --product[symbol];
  return product;
}

SymbolValues SmallValues() {
  SymbolValues values;
  for (size_t i = 0; i < kSymbolCount; ++i) values[static_cast<Symbol>(i)] = 1;
  values[kDmodel] = 6;
  values[kSeq] = 10;
  values[kHead] = 4;
  values[kKVHead] = 2;
  values[kQkvHead] = 8;
  values[kDp] = 4;
  values[kTp] = 3;
  return values;
}

TEST(StageSize, PrintsAsProductsInTheOrderOfNames) {
  EXPECT_EQ(Text(Over({})), "1");
  EXPECT_EQ(Text(Over({kMicroBatch}, {kDp})), "MicroBatch/dp");
  EXPECT_EQ(Text(Over({kSeq, kKExperts}, {kTp, kEp, kCp, kExperts})),
            "KExperts*Seq/(Experts*cp*ep*tp)");
  Product twice = Over({kKVHead}, {kTp});
  twice.factor = 2;
  EXPECT_EQ(Text(twice), "2*KVHead/tp");
  EXPECT_EQ(Text(Over({kQkvHead}, {kTp})), "(Head + 2*KVHead)/tp");
}

// Weights of a gated layer: added in the model's order, printed in the order of powers.
TEST(StageSize, SumsPutLikeTermsTogether) {
  Size sum;
  sum.Add(Over({kDmodel, kDmodel, kQkvHead}, {kHead, kTp}));
  sum.Add(Over({kDmodel, kDmodel}, {kTp}));
  for (int i = 0; i < 3; ++i) sum.Add(Over({kDmodel, kDff}, {kTp}));
  const std::string text = "3*Dff*Dmodel/tp + Dmodel**2/tp + Dmodel**2*(Head + 2*KVHead)/(Head*tp)";
  EXPECT_EQ(Text(sum), text);
  sum.per_dp = true;
  EXPECT_EQ(Text(sum), "(" + text + ")/dp");
}

TEST(StageSize, FractionsAreTheNearestDouble) {
  const SymbolValues values = SmallValues();
  EXPECT_EQ(Evaluate(Over({kSeq, kDmodel}, {kDp, kTp}), values).value(), 5.0);  // 10·6/(4·3)
  EXPECT_EQ(Evaluate(Over({kSeq}, {kTp}), values).value(), 10.0 / 3.0);
  Size sum;
  sum.Add(Over({kDmodel}, {kDp}));  // 1.5
  sum.Add(Over({}, {kTp}));         // 1/3
  EXPECT_EQ(Evaluate(sum, values).value(), 11.0 / 6.0);
  sum.per_dp = true;
  EXPECT_EQ(Evaluate(sum, values).value(), 11.0 / 24.0);
}

TEST(StageSize, RefusesWhatDoesNotFit) {
  SymbolValues values = SmallValues();
  values[kDmodel] = values[kDff] = 1'000'000'000;
  EXPECT_EQ(Evaluate(Over({kDmodel, kDff}), values).value(), 1e18);
  const auto large = Evaluate(Over({kDmodel, kDff, kSeq}), values);
  ASSERT_FALSE(large.has_value());
  EXPECT_EQ(large.error().code, ErrorCode::kBadInput);
  // Factors that the denominators cancel need not fit.
  values[kTp] = 1'000'000'000;
  EXPECT_EQ(Evaluate(Over({kDmodel, kDff, kSeq}, {kTp}), values).value(), 1e10);
}

// A sequence that is whole on all ranks, divided over tp, or summed over each rank's part.
Layout Whole() { return {.shape = {Over({kSeq})}}; }
Layout Shared() { return {.shape = {Over({kSeq}, {kTp})}}; }
Layout Partial() { return {.shape = {Over({kSeq})}, .partial = {Over({kDff}, {kTp})}}; }

std::string MatchText(const Layout& from, const Layout& to,
                      std::vector<Symbol> dimensions = {kDp, kTp, kCp, kEp}) {
  const auto collectives = MatchCollectives(from, to, dimensions);
  if (!collectives) return "impossible";
  std::string text;
  for (const Collective& one : *collectives) {
    if (!text.empty()) text += ", ";
    text += std::string(etude::Name(one.type)) + " " + Text(Over({one.over}));
  }
  return text;
}

TEST(StageCollectives, OneForEachPairOfHoldings) {
  EXPECT_EQ(MatchText(Whole(), Whole()), "");
  EXPECT_EQ(MatchText(Whole(), Shared()), "");
  EXPECT_EQ(MatchText(Whole(), Partial()), "impossible");
  EXPECT_EQ(MatchText(Shared(), Whole()), "all_gather tp");
  EXPECT_EQ(MatchText(Shared(), Shared()), "");
  EXPECT_EQ(MatchText(Shared(), Partial()), "impossible");
  EXPECT_EQ(MatchText(Partial(), Whole()), "all_reduce tp");
  EXPECT_EQ(MatchText(Partial(), Shared()), "reduce_scatter tp");
  EXPECT_EQ(MatchText(Partial(), Partial()), "");
}

// If two kinds of parallelism divide a dimension, each sees only its own part.
TEST(StageCollectives, DimensionsAreLookedAtOneByOne) {
  const Layout both{.shape = {Over({kSeq}, {kCp, kTp})}};
  const Layout context{.shape = {Over({kSeq}, {kCp})}};
  EXPECT_EQ(MatchText(both, context), "all_gather tp");
  EXPECT_EQ(MatchText(both, Whole()), "all_gather tp, all_gather cp");
  EXPECT_EQ(MatchText(both, Whole(), {kCp}), "all_gather cp");
  const Layout other{.shape = {Over({kDmodel}, {kTp}), Over({kSeq}, {kCp})}};
  EXPECT_EQ(MatchText(both, other), "all_to_all tp");
}

// Gradients of sharded weights: reduce-scatter over dp, then all-reduce over cp.
TEST(StageCollectives, ShardedSumsAreScattered) {
  Size weights = Over({kDmodel, kDmodel}, {kTp});
  const Layout gradient{.shape = {weights},
                        .partial = {Over({kMicroBatch}, {kDp}), Over({kSeq}, {kCp})}};
  EXPECT_EQ(MatchText(gradient, {.shape = {weights}}), "all_reduce dp, all_reduce cp");
  const Layout whole{.shape = {weights}};
  weights.per_dp = true;
  EXPECT_EQ(MatchText(gradient, {.shape = {weights}}), "reduce_scatter dp, all_reduce cp");
  EXPECT_EQ(MatchText({.shape = {weights}}, whole), "all_gather dp");
}

}  // namespace
}  // namespace etude::stage
