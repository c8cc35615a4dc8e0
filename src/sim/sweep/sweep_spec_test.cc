#include "src/sim/sweep/sweep_spec.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace etude {
namespace {

std::string ErrorOf(const std::string& text) {
  const auto spec = ParseSweep(text, "s.toml");
  return spec ? "" : spec.error().message;
}

TEST(SweepSpec, AxesInTheOrderOfTheDocument) {
  const auto spec = ParseSweep(R"(
[base]
job = "job"

[grid]
network.latency = ["1us", "2us", 500]
algorithm = ["ring", "direct"]

[[point]]
name = "small"
network.npus_count = 8
[[point]]
network = { npus_count = [4, 4], topology = "Ring" }
)",
                               "s.toml");
  ASSERT_TRUE(spec) << spec.error().message;
  ASSERT_EQ(spec->axes.size(), 3U);
  EXPECT_EQ(spec->axes[0].name, "name");
  EXPECT_EQ(spec->axes[0].choices[0].label, "small");
  EXPECT_EQ(spec->axes[0].choices[1].label, "2");
  EXPECT_EQ(spec->axes[0].choices[1].settings.size(), 2U);
  EXPECT_EQ(spec->axes[1].name, "network.latency");
  EXPECT_EQ(spec->axes[1].choices[2].label, "500");
  EXPECT_EQ(spec->axes[1].choices[2].settings.front().path,
            (std::vector<std::string>{"network", "latency"}));
  EXPECT_EQ(spec->axes[2].name, "algorithm");
  EXPECT_EQ(spec->point_count(), 12U);
  // The last axis varies fastest: 0 0 0, 0 0 1, 0 1 0 …, and point 7 is 1 0 1.
  EXPECT_EQ(spec->ChoicesOf(1), (std::vector<size_t>{0, 0, 1}));
  EXPECT_EQ(spec->ChoicesOf(2), (std::vector<size_t>{0, 1, 0}));
  EXPECT_EQ(spec->ChoicesOf(7), (std::vector<size_t>{1, 0, 1}));
}

TEST(SweepSpec, LabelsOfListsAndTables) {
  const auto spec = ParseSweep(R"(
[grid]
network.bandwidth = ["50GB/s", ["50GB/s", 25], [1.5]]
network = {}
)",
                               "s.toml");
  EXPECT_FALSE(spec);  // a table is defined twice
  const auto lists = ParseSweep("grid.network.bandwidth = ['50GB/s', ['50GB/s', 25], [1.5]]", "s");
  ASSERT_TRUE(lists) << lists.error().message;
  EXPECT_EQ(lists->axes[0].choices[0].label, "50GB/s");
  EXPECT_EQ(lists->axes[0].choices[1].label, "[50GB/s, 25]");
  EXPECT_EQ(lists->axes[0].choices[2].label, "[1.5]");
  const auto tables = ParseSweep("grid.network = ['a.yml', { latency = 5, npus_count = 8 }]", "s");
  ASSERT_TRUE(tables) << tables.error().message;
  EXPECT_EQ(tables->axes[0].choices[0].label, "a.yml");
  EXPECT_EQ(tables->axes[0].choices[1].label, "latency 5, npus_count 8");
}

TEST(SweepSpec, PricesAndFront) {
  const auto spec = ParseSweep(
      "pareto = ['step', 'cost', 'npus']\n[prices]\nnpu = 0\nbandwidth = [1, 2.5]\n", "s.toml");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->point_count(), 1U);
  EXPECT_EQ(spec->prices->npu, 0);
  EXPECT_EQ(spec->prices->bandwidth, (std::vector<double>{1, 2.5}));
  EXPECT_EQ(spec->pareto, (std::vector<SweepMeasure>{SweepMeasure::kStep, SweepMeasure::kCost,
                                                     SweepMeasure::kNpus}));
}

TEST(SweepSpec, SaysWhatIsWrong) {
  EXPECT_EQ(ErrorOf("gird.job = ['a']"),
            "s.toml:1:1: unknown key 'gird' of a sweep; did you mean 'grid'?");
  EXPECT_EQ(ErrorOf("[grid]\nnetwork.bandwith = [1]"),
            "s.toml:2:9: unknown key 'bandwith' of network; did you mean 'bandwidth'?");
  EXPECT_EQ(
      ErrorOf("[base]\nname = 'a'\n"),
      "s.toml:2:1: unknown key 'name' of [base], expected one of job, groups, compute, fill_ranks, "
      "generate, whatif, model, machine, network, system, memory, algorithm, algorithms, "
      "congestion, routes, "
      "queues, rendezvous, injection_scale, straggler, slow_link, capacity, energy");
  EXPECT_EQ(ErrorOf("[grid]\njob = 'a'"), "s.toml:2:7: job: found text, expected a list of values");
  EXPECT_EQ(ErrorOf("[grid]\njob = ['a', 'a']"), "s.toml:2:13: job: found a twice");
  EXPECT_EQ(ErrorOf("[base]\ncongestion = 'ware'"),
            "s.toml:2:14: congestion: found 'ware', expected unaware or aware");
  EXPECT_EQ(ErrorOf("[base]\nwhatif.layer = 4"),
            "s.toml:2:8: unknown key 'layer' of whatif; did you mean 'layers'?");
  EXPECT_EQ(ErrorOf("[grid]\nwhatif.dp = [2, 'a']"),
            "s.toml:2:17: dp: found text, expected a whole number");
  EXPECT_EQ(
      ErrorOf("[base]\nwhatif = 4"),
      "s.toml:2:10: whatif: found a whole number, expected a table, as in { layers = 24, … }");
  EXPECT_EQ(ErrorOf("[base]\nqueues = 0"), "s.toml:2:10: queues: found 0, expected 1 to 1024");
  EXPECT_EQ(ErrorOf("[base]\njob.a = 'b'"),
            "s.toml:2:1: job: found a table, expected text or a number");
  EXPECT_EQ(ErrorOf("[base]\nsystem.x.y.z = 1"),
            "s.toml:2:16: system: found a whole number, expected a value");
  std::string deep = "a";
  for (int i = 0; i < 100'000; ++i) deep += ".a";
  EXPECT_EQ(ErrorOf("# 'it''s fine'\n" + deep + " = 1"), "s.toml:2: nested too deeply");
  EXPECT_NE(ErrorOf("x = '" + deep + "'").find("unknown key 'x'"), std::string::npos);
  EXPECT_EQ(ErrorOf("pareto = ['step', 'cost']"), "s.toml:1:19: pareto: 'cost' requires [prices]");
  EXPECT_EQ(ErrorOf("pareto = ['step']"),
            "s.toml:1:10: pareto: found one, expected at least two measures");
  EXPECT_EQ(ErrorOf("pareto = []"),
            "s.toml:1:10: pareto: found an empty list, expected at least two measures");
  EXPECT_TRUE(ErrorOf("pareto = ['speed']").starts_with("s.toml:1:11: pareto: found 'speed', "));
  EXPECT_EQ(ErrorOf("[grid]\nalgorithm = []"),
            "s.toml:2:13: algorithm: found an empty list, expected a list of values");
  EXPECT_EQ(ErrorOf("[[point]]\nname = 'a'\n[[point]]\nname = 'a'\n"),
            "s.toml:3:1: name: found another point 'a', expected unique names");
}

TEST(SweepSpec, KeysOfGenerate) {
  const SweepGenerateKeys keys = {.known = {"what", "model", "dp", "micro_batches"},
                                  .own = {"output", "to"}};
  const auto error_of = [&](const std::string& text) {
    const auto spec = ParseSweep(text, "s.toml", keys);
    return spec ? "" : spec.error().message;
  };
  EXPECT_EQ(error_of("[base]\ngenerate.micro-batches = 4\ngenerate.dp = 2"), "");
  EXPECT_EQ(error_of("[base]\ngenerate.micro_batchs = 4"),
            "s.toml:2:10: unknown key 'micro_batchs' of generate; did you mean 'micro_batches'?");
  EXPECT_EQ(error_of("[[point]]\ngenerate = { what = 'llm', xyzzy = 1 }"),
            "s.toml:2:28: unknown key 'xyzzy' of generate, expected one of what, model, dp, "
            "micro_batches");
  EXPECT_EQ(error_of("[grid]\ngenerate.output = ['x']"),
            "s.toml:2:10: found 'output' of generate, which the sweep sets itself");
  EXPECT_EQ(error_of("[grid]\ngenerate.dp.x = [1]"),
            "s.toml:2:10: generate.dp: found a table, expected an option's value");
}

TEST(SweepSpec, PlansAreAnAxisBehindPoints) {
  const auto spec = ParseSweep(R"(
[grid]
algorithm = ["ring", "direct"]
[plans]
ranks = 4
tp = [1, 2]
pp = 1
[[point]]
name = "a"
)",
                               "s.toml");
  ASSERT_TRUE(spec) << spec.error().message;
  ASSERT_EQ(spec->axes.size(), 3U);
  EXPECT_EQ(spec->axes[0].name, "name");
  EXPECT_EQ(spec->axes[1].name, "plan");
  EXPECT_EQ(spec->axes[1].choices[1].label, "tp2 pp1 dp2");
  const std::vector<SweepSetting>& settings = spec->axes[1].choices[1].settings;
  ASSERT_EQ(settings.size(), 5U);
  EXPECT_EQ(settings[0].path, (std::vector<std::string>{"generate", "tp"}));
  EXPECT_EQ(settings[0].value, 2);
  EXPECT_EQ(spec->plans->combinations, 2U);
  for (size_t point = 0; point < spec->point_count(); ++point) {
    EXPECT_EQ(spec->PointOf(spec->ChoicesOf(point)), point);
  }
}

// Micro-batches use the sequences that [base] sets.
TEST(SweepSpec, PlansOfABatch) {
  const auto spec = ParseSweep(
      "base.generate.sequences = 4\nplans = { ranks = 2, global_batch = 32, tp = 1, pp = 1 }",
      "s.toml");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->axes[0].choices[0].label, "tp1 pp1 dp2 mb4");
}

TEST(SweepSpec, WrongPlans) {
  EXPECT_EQ(ErrorOf("[plans]\nranks = 0"), "s.toml:2:9: ranks: found 0, expected 1 to 16777216");
  EXPECT_EQ(ErrorOf("plans = []").substr(0, 15), "s.toml:1:9: pla");
  EXPECT_EQ(ErrorOf("[plans]\ntp = 2"), "s.toml:1:1: missing 'ranks' of [plans]");
  EXPECT_EQ(ErrorOf("[plans]\nranks = 4\n[grid]\ngenerate.tp = [1]"),
            "s.toml:4:16: generate.tp: also given by [plans], expected in one place");
}

TEST(SweepSpec, Prices) {
  EXPECT_EQ(ErrorOf("[prices]\nnpu = 0.0\nbandwidth = 0"), "");
  EXPECT_EQ(ErrorOf("[prices]\nnpu = -1"), "s.toml:2:7: npu: found -1, expected 0 to 1000000000");
  EXPECT_EQ(ErrorOf("[prices]\nnpu = 'a'"),
            "s.toml:2:7: npu: found text, expected a number, 0 or more");
  EXPECT_EQ(ErrorOf("[prices]"), "s.toml:1:1: [prices]: missing 'npu' or 'bandwidth'");
}

TEST(SweepSpec, TooManyPoints) {
  std::string text = "[grid]\n";
  for (const std::string key : {"a", "b", "c", "d", "e", "f"}) {
    text += "system." + key + " = [1, 2, 3, 4, 5, 6, 7]\n";
  }
  EXPECT_EQ(ErrorOf(text), "s.toml: found more than 100000 points, the maximum");
}

}  // namespace
}  // namespace etude
