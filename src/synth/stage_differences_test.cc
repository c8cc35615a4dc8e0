#include "src/synth/stage_differences.h"

#include <gtest/gtest.h>

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
  options.layers = options.pp + pick({0, 1, 2});
  options.micro_batch = options.dp * options.ep * pick({1, 2});
  options.batch = options.micro_batch * pick({1, 2, 3});
  options.sequence = 48 * pick({1, 2});
  options.heads = 8 * pick({1, 2});
  options.kv_heads = 8;
  options.dmodel = options.heads * pick({12, 24});
  options.dff = 96 * pick({1, 3});
  options.vocabulary = 96 * pick({2, 5}) + (options.tp * options.ep == 1 ? pick({0, 1}) : 0);
  options.experts = options.ep * pick({1, 2});
  options.top_experts = pick({1, 2});
  if (options.top_experts > options.experts) options.top_experts = 1;
  options.weight_sharded = pick({0, 1}) == 1;
  options.mixed_precision = options.model == Model::kLlama || pick({0, 1}) == 1;
  options.tpsp = options.model != Model::kGpt || pick({0, 1}) == 1;
  return options;
}

TEST(StageDifferences, CorrectionsExplainEverything) {
  std::mt19937 random(1);
  std::set<std::string_view> used;
  int jobs = 0;
  for (int i = 0; i < 200; ++i) {
    const StageOptions options = RandomJob(random);
    const auto found = FindStageDifferences(options);
    if (!found) {
      fmt::print("{}: {}\n", found.error().message, TextOf(options));
      continue;
    }
    ++jobs;
    for (const Difference& difference : found->quantities) {
      EXPECT_EQ(difference.rest(), 0)
          << QuantityRows()[static_cast<size_t>(difference.quantity)].name << ": "
          << difference.stage << " to " << difference.ours << ", " << TextOf(options);
      for (const auto& one : difference.corrections) used.insert(one.correction.cause);
    }
  }
  fmt::print("{} jobs\n", jobs);
  for (const Cause& cause : Causes()) EXPECT_TRUE(used.contains(cause.id)) << cause.id;
}

}  // namespace
}  // namespace etude::stage
