#include "src/compat/stage/stage_differences.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace etude::stage {
namespace {

using enum Quantity;

std::string TextOf(const StageOptions& o) {
  return fmt::format(
      "model {} dp {} tp {} cp {} ep {} pp {} layers {} batch {} micro {} seq {} dmodel {} dff {} "
      "heads {} kv {} vocabulary {} experts {} of {} tpsp {} sharded {} mixed {}",
      static_cast<int>(o.model), o.dp, o.tp, o.cp, o.ep, o.pp, o.layers, o.batch, o.micro_batch,
      o.sequence, o.dmodel, o.dff, o.heads, o.kv_heads, o.vocabulary, o.top_experts, o.experts,
      o.tpsp, o.weight_sharded, o.mixed_precision);
}

StageOptions RandomJob(std::mt19937& random) {
  const auto pick = [&](std::vector<int64_t> values) { return values[random() % values.size()]; };
  StageOptions options;
  options.model = std::vector{Model::kGpt, Model::kLlama, Model::kMoe}[random() % 3];
  options.dp = pick({1, 2, 3});
  options.tp = pick({1, 2, 4});
  options.cp = pick({1, 2, 3});
  options.ep = pick({1, 2});
  options.pp = pick({1, 2, 3});
  options.layers = options.pp + pick({0, 1});
  options.micro_batch = options.dp * options.ep * pick({1, 2});
  options.batch = options.micro_batch * pick({1, 2});
  options.sequence = 48 * pick({1, 2});
  options.heads = 8 * pick({1, 2});
  options.kv_heads = 8;
  options.dmodel = options.heads * pick({12, 24});
  options.dff = 96 * pick({1, 3});
  options.vocabulary = 97 * pick({2, 5});
  options.experts = options.ep * pick({1, 4});
  options.top_experts = pick({1, 2});
  if (options.top_experts > options.experts) options.top_experts = 1;
  options.weight_sharded = pick({0, 1}) == 1;
  options.mixed_precision = options.model == Model::kLlama || pick({0, 1}) == 1;
  options.tpsp = options.model != Model::kGpt || pick({0, 1}) == 1;
  return options;
}

// Four tokens for eight experts with room for one each.
StageOptions SparseJob() {
  return {.model = Model::kMoe,
          .layers = 1,
          .batch = 1,
          .micro_batch = 1,
          .sequence = 4,
          .dmodel = 16,
          .dff = 16,
          .heads = 2,
          .kv_heads = 2,
          .vocabulary = 10,
          .experts = 8,
          .top_experts = 1};
}

TEST(StageDifferences, CorrectionsExplainEverything) {
  std::mt19937 random(1);
  std::set<std::string_view> used;
  std::vector<StageOptions> jobs = {SparseJob()};
  while (jobs.size() < 30) jobs.push_back(RandomJob(random));
  for (const StageOptions& options : jobs) {
    const auto found = FindStageDifferences(options);
    ASSERT_TRUE(found) << found.error().message << ", " << TextOf(options);
    for (const Difference& difference : found->quantities) {
      EXPECT_EQ(difference.rest(), 0)
          << QuantityRows()[static_cast<size_t>(difference.quantity)].name << ": "
          << difference.stage << " to " << difference.ours << ", " << TextOf(options);
      for (const auto& one : difference.corrections) used.insert(one.correction.cause);
    }
  }
  for (const Cause& cause : Causes()) EXPECT_TRUE(used.contains(cause.id)) << cause.id;
}

// Returns "1: 2088" for each correction of the quantity.
std::vector<std::string> CorrectionsTo(const Difference& difference) {
  std::vector<std::string> texts;
  for (const auto& one : difference.corrections) {
    texts.push_back(fmt::format("{}: {}", one.correction.cause, one.amount));
  }
  return texts;
}

// Two replicas, two micro-batches: U = 2 · 4 · 8 / 2 = 32, n = 4 tokens, W = 2 · 8 · (16 + 16) =
// 512 weights of the layer and 80 of either embedding.
TEST(StageDifferences, OfASmallJob) {
  const auto found = FindStageDifferences({.dp = 2,
                                           .layers = 1,
                                           .batch = 4,
                                           .micro_batch = 2,
                                           .sequence = 4,
                                           .dmodel = 8,
                                           .dff = 16,
                                           .heads = 2,
                                           .vocabulary = 10});
  ASSERT_TRUE(found) << found.error().message;
  std::map<Quantity, Difference> by_quantity;
  for (const Difference& one : found->quantities) by_quantity.emplace(one.quantity, one);
  const auto expect = [&](Quantity quantity, int64_t stage, const std::vector<std::string>& texts,
                          int64_t ours) {
    const Difference& one = by_quantity.at(quantity);
    const std::string_view name = QuantityRows()[static_cast<size_t>(quantity)].name;
    EXPECT_EQ(one.stage, stage) << name;
    EXPECT_EQ(CorrectionsTo(one), texts) << name;
    EXPECT_EQ(one.ours, ours) << name;
  };
  EXPECT_EQ(by_quantity.size(), 9u);
  // Three passes of 8 × 24, 8 × 8, 8 × 16 and 16 × 8 for 4 tokens, twice.
  expect(kMatrices, 2 * 3 * 4 * 512, {"2: 12288"}, 2 * 2 * 3 * 4 * 512);
  // 21 for each of 32; 20 pairs in two heads of 4: 14 · 20 · 4 + 14 · 20 + 2 · 32.
  expect(kAttention, 2 * 21 * 32, {"3: 1584"}, 2 * (1120 + 280 + 64));
  // 22 for each of 32; 4 + 9 and an addition, twice, and those of the last norm.
  expect(kNorms, 2 * 22 * 32, {"b: 384", "c: 832"}, 2 * (28 + 13) * 32);
  // 10 for each of 32, of which 8 are copies; 2, GELU's 27 for 4 · 16, rotation of 64 twice by 3.
  expect(kElementwise, 2 * 10 * 32, {"a: -512", "g: 3456", "h: 768"},
         2 * (2 * 32 + 27 * 64 + 2 * 3 * 64));
  expect(kEmbedding, 2 * 3 * 4 * 80, {"4: -1856"}, 2 * 32);
  expect(kHeadProducts, 2 * 3 * 4 * 80, {"2: 1920"}, 2 * 2 * 3 * 4 * 80);
  expect(kLoss, 2 * 10 * 32, {"5: -144"}, 2 * (6 * 40 + 2 * 4));
  // 14 for each of 512 + 160 weights and 3 norms of 8.
  expect(kOptimizer, 2 * (512 + 160), {"17: 8400"}, 14 * 696);
  // Not twice; norms; 4 bytes each.
  expect(kReplicaAllReduce, 2 * 512 + 160, {"7: -512", "17: 24", "1: 2088"}, 4 * 696);
}

// Three passes of three 16 × 16 matrices for the four unused rows.
TEST(StageDifferences, ExpertsHaveRoomForWholeRows) {
  const auto found = FindStageDifferences(SparseJob());
  ASSERT_TRUE(found) << found.error().message;
  const Difference& matrices = found->quantities.front();
  ASSERT_EQ(matrices.quantity, kMatrices);
  EXPECT_EQ(CorrectionsTo(matrices).back(), fmt::format("l: {}", 2 * 3 * 3 * 16 * 16 * 4));
}

// The implementation matches docs/models/stage.md.
TEST(StageDifferences, FormulasAreDocumented) {
  std::ifstream file(ETUDE_TEST_DATA "/../../docs/models/stage.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(text.empty());
  for (const Model model : {Model::kGpt, Model::kLlama, Model::kMoe}) {
    for (const bool tpsp : {false, true}) {
      for (const bool sharded : {false, true}) {
        const StageOptions options{.model = model, .tpsp = tpsp, .weight_sharded = sharded};
        for (const Correction& one : CorrectionsOf(options)) {
          const std::string row = fmt::format("`{}` |", one.formula);
          EXPECT_NE(text.find(row), std::string::npos) << row;
        }
        for (const Definition& one : DefinitionsOf(options)) {
          const std::string row = fmt::format("`{}` | {} |", one.formula, one.text);
          EXPECT_NE(text.find(row), std::string::npos) << row;
        }
      }
    }
  }
  for (const Cause& cause : Causes()) {
    EXPECT_NE(text.find(fmt::format("\n| {} | ", cause.id)), std::string::npos) << cause.id;
  }
}

TEST(StageDifferences, OurJobIsTheSameOne) {
  const auto ours = CounterpartOf({.model = Model::kMoe,
                                   .dp = 2,
                                   .tp = 2,
                                   .cp = 2,
                                   .ep = 4,
                                   .pp = 3,
                                   .layers = 5,
                                   .batch = 64,
                                   .micro_batch = 16,
                                   .weight_sharded = true,
                                   .mixed_precision = true});
  ASSERT_TRUE(ours) << ours.error().message;
  EXPECT_EQ(ours->plan.ranks(), 2 * 2 * 2 * 4 * 3);
  EXPECT_EQ(ours->plan.layer.sequences, 2);
  EXPECT_EQ(ours->plan.pipeline.micro_batches, 4);
  EXPECT_EQ(ours->plan.zero_stage, 3);
  EXPECT_EQ(ours->model.weights, DType::kBFloat16);
  // Without experts, --ep adds to tensor parallelism.
  const auto dense = CounterpartOf({.ep = 2, .batch = 64, .micro_batch = 16});
  ASSERT_TRUE(dense) << dense.error().message;
  EXPECT_EQ(dense->plan.layer.tensor, 2);
  EXPECT_EQ(dense->model.kv_heads, 64);
  EXPECT_EQ(dense->model.weights, DType::kFloat32);
}

}  // namespace
}  // namespace etude::stage
