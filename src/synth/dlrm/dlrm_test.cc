#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "src/synth/dlrm/dlrm_file.h"
#include "src/synth/dlrm/dlrm_job.h"
#include "src/synth/dlrm/dlrm_model.h"
#include "src/synth/dlrm/dlrm_plan.h"
#include "src/synth/job/sound_job.h"

namespace etude {
namespace {

struct Counts {
  std::string name;
  int64_t flops = 0;
  int64_t matrix_flops = 0;
  int64_t bytes = 0;

  friend bool operator==(const Counts&, const Counts&) = default;
  friend void PrintTo(const Counts& counts, std::ostream* out) {
    *out << counts.name << ' ' << counts.flops << ' ' << counts.matrix_flops << ' ' << counts.bytes;
  }
};

std::vector<Counts> CountsOf(const std::vector<StepWork>& works) {
  std::vector<Counts> counts;
  for (const StepWork& work : works) {
    counts.push_back({work.name, work.flops, work.matrix_flops,
                      work.communicates() ? work.bytes.count : work.memory.count});
  }
  return counts;
}

StepWork WorkOf(const StepJob& job, int64_t rank, const std::string& name) {
  const auto found = std::ranges::find(job.program(rank), name, &StepWork::name);
  EXPECT_NE(found, job.program(rank).end()) << name;
  return found == job.program(rank).end() ? StepWork{} : *found;
}

// Three features of two units: 3 pairs, so the top has 5 inputs.
DlrmModel Tiny() {
  return {.dense = 3,
          .bottom = {4, 2},
          .tables = {{.rows = 10, .dimension = 2, .lookups = 3}, {.rows = 5, .dimension = 2}},
          .top = {3, 1}};
}

TEST(DlrmModel, Parameters) {
  EXPECT_EQ(Tiny().top_input(), 5);
  EXPECT_EQ(DenseParameters(Tiny()), (3 + 1) * 4 + (4 + 1) * 2 + (5 + 1) * 3 + (3 + 1) * 1);
  EXPECT_EQ(TableParameters(Tiny()), 30);
}

TEST(DlrmModel, PresetsFitTogether) {
  for (const DlrmPreset& preset : DlrmPresets()) {
    const auto fits = CheckDlrm(preset.model);
    EXPECT_TRUE(fits) << preset.name << ": " << fits.error().message;
  }
  // Input widths of the top stacks in the reference repository.
  EXPECT_EQ(FindPreset(DlrmPresets(), "criteo-kaggle")->model.top_input(), 367);
  EXPECT_EQ(FindPreset(DlrmPresets(), "criteo-terabyte")->model.top_input(), 415);
  EXPECT_EQ(FindPreset(DlrmPresets(), "mlperf-dlrm")->model.top_input(), 479);
  EXPECT_EQ(FindPreset(DlrmPresets(), "mlperf-dlrm-dcnv2")->model.top_input(), 27 * 128);
  // 33,762,577 categories of 16.
  EXPECT_EQ(TableParameters(FindPreset(DlrmPresets(), "criteo-kaggle")->model), 540'201'232);
  EXPECT_EQ(DenseParameters(FindPreset(DlrmPresets(), "criteo-kaggle")->model), 475'985);
}

TEST(DlrmJob, AStepOnOneRankByHand) {
  const auto job = MakeDlrmJob(Tiny(), {.batch = 2});
  ASSERT_TRUE(job) << job.error().message;
  const std::vector<Counts> expected = {
      {"table 0 lookup", 12, 0, (12 + 4) * 4 + 6 * 8},
      {"table 1 lookup", 4, 0, (4 + 4) * 4 + 2 * 8},
      {"bottom 0", 56, 48, (6 + 16 + 8) * 4},
      {"bottom 0 relu", 8, 0, 64},
      {"bottom 1", 36, 32, (8 + 10 + 4) * 4},
      {"bottom 1 relu", 4, 0, 32},
      {"features", 0, 0, 96},
      {"interaction", 72, 72, (12 + 18) * 4},
      {"interaction output", 0, 0, 80},
      {"top 0", 66, 60, (10 + 18 + 6) * 4},
      {"top 0 relu", 6, 0, 48},
      {"top 1", 14, 12, (6 + 4 + 2) * 4},
      {"loss", 22, 0, 24},
      {"loss backward", 4, 0, 24},
      {"top 1 weight gradient", 14, 12, (6 + 2 + 4) * 4},
      {"top 1 input gradient", 12, 12, (2 + 3 + 6) * 4},
      {"top 0 relu backward", 6, 0, 72},
      {"top 0 weight gradient", 66, 60, (10 + 6 + 18) * 4},
      {"top 0 input gradient", 60, 60, (6 + 15 + 10) * 4},
      {"interaction output backward", 0, 0, (10 + 18 + 4) * 4},
      {"interaction right gradient", 72, 72, (18 + 12 + 12) * 4},
      {"interaction left gradient", 72, 72, (18 + 12 + 12) * 4},
      {"interaction gradient", 12 + 4, 0, (24 + 4 + 12) * 4},
      {"bottom 1 relu backward", 4, 0, 48},
      {"bottom 1 weight gradient", 36, 32, (8 + 4 + 10) * 4},
      {"bottom 1 input gradient", 32, 32, (4 + 8 + 8) * 4},
      {"bottom 0 relu backward", 8, 0, 96},
      {"bottom 0 weight gradient", 56, 48, (6 + 8 + 16) * 4},
      {"table 0 update", 24, 0, (4 + 12 + 12) * 4 + 6 * 8},
      {"table 1 update", 8, 0, (4 + 4 + 4) * 4 + 2 * 8},
      {"optimizer", 2 * 48, 0, 3 * 48 * 4},
  };
  EXPECT_EQ(CountsOf(job->program(0)), expected);
  EXPECT_EQ(WorkOf(*job, 0, "interaction").product, (ProductShape{2, 3, 2, 3}));
  EXPECT_EQ(WorkOf(*job, 0, "top 0 weight gradient").product, (ProductShape{1, 3, 2, 5}));
}

TEST(DlrmJob, MemoryByHand) {
  const auto job = MakeDlrmJob(Tiny(), {.batch = 2});
  ASSERT_TRUE(job);
  const std::vector<Bytes> memory = job->MemoryOf(0);
  const int64_t states = (48 + 30) * 4 + 48 * 4;
  EXPECT_EQ(job->states()[0].total(), Bytes{states});
  EXPECT_EQ(memory[0], Bytes{states + 6 * 8});  // the first table's indices
  EXPECT_EQ(memory[2], Bytes{states + 64 + 6 * 4});
  // Indices, numbers, both layers' outputs, features, interactions, the top's layer, the loss.
  const int64_t kept = 64 + (6 + 8 + 4 + 12 + 10 + 6 + 2) * 4;
  EXPECT_EQ(std::ranges::max(memory), Bytes{states + kept});
  EXPECT_EQ(memory[12], Bytes{states + kept});
  EXPECT_EQ(memory.back(), Bytes{states});
}

TEST(DlrmJob, Adagrad) {
  const auto job = MakeDlrmJob(Tiny(), {.batch = 2, .optimizer = DlrmOptimizer::kAdagrad});
  ASSERT_TRUE(job);
  const StepWork rows = WorkOf(*job, 0, "table 0 update");
  EXPECT_EQ(rows.flops, 4 * 12 + 5 * 6);
  EXPECT_EQ(rows.memory, Bytes{(4 + 12 + 12) * 4 + 6 * 8 + 2 * 6 * 4});
  const StepWork dense = WorkOf(*job, 0, "optimizer");
  EXPECT_EQ(dense.flops, 7 * 48);
  EXPECT_EQ(dense.memory, Bytes{5 * 48 * 4});
}

TEST(DlrmJob, InferenceIsForwardAlone) {
  const auto job = MakeDlrmJob(Tiny(), {.batch = 2, .training = false});
  ASSERT_TRUE(job);
  ASSERT_EQ(job->program(0).size(), 13u);
  EXPECT_EQ(CountsOf(job->program(0)).back(), (Counts{"sigmoid", 6, 0, 16}));
}

TEST(DlrmJob, CrossLayersByHand) {
  DlrmModel model = Tiny();
  model.bottom = {2};
  model.tables.resize(1);
  model.interaction = Interaction::kCross;
  model.cross_layers = 2;
  model.cross_rank = 3;
  EXPECT_EQ(DenseParameters(model), 4 * 2 + 2 * (4 * 3 + 3 * 4 + 4) + (4 + 1) * 3 + 4);
  const auto job = MakeDlrmJob(model, {.batch = 2});
  ASSERT_TRUE(job) << job.error().message;
  std::vector<Counts> cross;
  for (const Counts& counts : CountsOf(job->program(0))) {
    if (counts.name.starts_with("cross") || counts.name == "features gradient") {
      cross.push_back(counts);
    }
  }
  const auto forward = [](const std::string& name) -> std::vector<Counts> {
    return {{name + " down", 48, 48, (8 + 12 + 6) * 4},
            {name + " up", 56, 48, (6 + 16 + 8) * 4},
            {name, 16, 0, (24 + 8) * 4}};
  };
  const auto backward = [](const std::string& name, int64_t sums) -> std::vector<Counts> {
    return {{name + " backward", 16 + 8 * sums, 0, (24 + 8 * sums + 16) * 4},
            {name + " up weight gradient", 56, 48, (6 + 8 + 16) * 4},
            {name + " up input gradient", 48, 48, (8 + 12 + 6) * 4},
            {name + " down weight gradient", 48, 48, (8 + 6 + 12) * 4},
            {name + " down input gradient", 48, 48, (6 + 12 + 8) * 4},
            {name + " sum", 8, 0, 96}};
  };
  std::vector<Counts> expected;
  for (const std::vector<Counts>& part :
       {forward("cross 0"), forward("cross 1"), backward("cross 1", 0), backward("cross 0", 1)}) {
    expected.insert(expected.end(), part.begin(), part.end());
  }
  expected.push_back({"features gradient", 8, 0, 96});
  EXPECT_EQ(cross, expected);
}

// A table for each kind of placement, on two ranks of 8 samples.
DlrmModel Mixed() {
  return {.dense = 3,
          .bottom = {4},
          .tables = {{.rows = 100, .dimension = 4, .lookups = 2},
                     {.rows = 50, .dimension = 4},
                     {.rows = 8, .dimension = 4},
                     {.rows = 1000, .dimension = 4, .lookups = 5}},
          .interaction = Interaction::kConcat,
          .top = {1}};
}
DlrmPlan MixedPlan() {
  return {.ranks = 2,
          .batch = 8,
          .replicate = Bytes{200},
          .split_rows = Bytes{10'000},
          .optimizer = DlrmOptimizer::kAdagrad};
}

TEST(DlrmJob, TablesWholeByRowsAndReplicated) {
  const auto job = MakeDlrmJob(Mixed(), MixedPlan());
  ASSERT_TRUE(job) << job.error().message;
  std::vector<Counts> communication;
  for (const StepWork& work : job->program(1)) {
    if (work.communicates()) communication.push_back({work.name, 0, 0, work.bytes.count});
  }
  const std::vector<Counts> expected = {
      {"indices all_to_all", 0, 0, (16 * 2 + 8 * 5) * 8},  // received by rank 0
      {"lookups all_to_all", 0, 0, 16 * 4 * 4},
      {"lookups reduce_scatter", 0, 0, 16 * 4 * 4},
      {"lookups gradient all_to_all", 0, 0, 16 * 4 * 4},
      {"lookups gradient all_gather", 0, 0, 8 * 4 * 4},
      {"gradients all_reduce", 0, 0, (16 + 21 + 8 * 4) * 4},
  };
  EXPECT_EQ(communication, expected);
  EXPECT_EQ(WorkOf(*job, 0, "table 0 lookup").flops, 16 * 2 * 4);
  EXPECT_EQ(WorkOf(*job, 1, "table 1 lookup").flops, 16 * 4);
  EXPECT_EQ(WorkOf(*job, 1, "table 2 lookup").flops, 8 * 4);
  const StepWork rows = WorkOf(*job, 1, "table 3 rows lookup");
  EXPECT_EQ(rows.flops, 8 * 5 * 4);
  EXPECT_EQ(rows.memory, Bytes{(160 + 16 * 4) * 4 + 40 * 8});
  EXPECT_EQ(WorkOf(*job, 0, "table 2 gradient").memory, Bytes{(8 * 4 + 32) * 4 + 8 * 8});
}

TEST(DlrmPlan, WhatRanksHold) {
  const TablePlacement placement = PlaceTables(Mixed(), MixedPlan());
  EXPECT_EQ(placement.replicated, (std::vector<size_t>{2}));
  EXPECT_EQ(placement.by_rows, (std::vector<size_t>{3}));
  const StepStates states = StatesOfRank(Mixed(), MixedPlan(), placement, 0);
  EXPECT_EQ(states.weights, Bytes{(400 + 500 * 4 + 32 + 37) * 4});
  EXPECT_EQ(states.gradients, Bytes{(37 + 32) * 4});
  EXPECT_EQ(states.optimizer, Bytes{(37 + 32 + 100 + 500) * 4});
  DlrmPlan inference = MixedPlan();
  inference.training = false;
  EXPECT_EQ(StatesOfRank(Mixed(), inference, placement, 1).total(),
            Bytes{(200 + 2000 + 32 + 37) * 4});
}

TEST(DlrmPlan, TheCostliestGoToTheRankWithLeast) {
  DlrmModel model = Tiny();
  model.tables.clear();
  for (const int64_t rows : {3, 7, 4, 5}) model.tables.push_back({.rows = rows, .dimension = 2});
  model.tables[0].lookups = 9;
  DlrmPlan plan{.ranks = 2};
  const auto whole = [](size_t table) {
    return TablePart{.table = table, .first_column = 0, .columns = 2};
  };
  using Parts = std::vector<std::vector<TablePart>>;
  EXPECT_EQ(PlaceTables(model, plan).parts,
            (Parts{{whole(0), whole(1)}, {whole(2), whole(3)}}));  // 7 + 3 and 5 + 4
  plan.cost = TableCost::kLookups;
  EXPECT_EQ(PlaceTables(model, plan).parts,
            (Parts{{whole(0)}, {whole(1), whole(2), whole(3)}}));  // 9 and 1 + 1 + 1
}

TEST(DlrmPlan, PartsHaveUpToSoManyColumns) {
  DlrmModel model = Mixed();
  model.tables = {{.rows = 10, .dimension = 4}};
  const TablePlacement placement = PlaceTables(model, {.ranks = 2, .most_columns = 3});
  using Parts = std::vector<std::vector<TablePart>>;
  EXPECT_EQ(placement.parts, (Parts{{{0, 0, 3}}, {{0, 3, 1}}}));
  const auto job = MakeDlrmJob(model, {.ranks = 2, .batch = 8, .most_columns = 3});
  EXPECT_EQ(WorkOf(*job, 1, "table 0[3:4] lookup").flops, 16);
  EXPECT_EQ(WorkOf(*job, 1, "lookups all_to_all").bytes, Bytes{16 * 3 * 4});
}

TEST(DlrmModel, WeightsFitInto64Bits) {
  DlrmModel model = Tiny();
  model.interaction = Interaction::kCross;
  model.cross_layers = 1 << 10;
  model.cross_rank = 1 << 20;
  EXPECT_TRUE(CheckDlrm(model));
  model.tables = std::vector<EmbeddingTable>(1 << 14, {.rows = 1, .dimension = 1 << 20});
  EXPECT_FALSE(CheckDlrm(model));
}

TEST(DlrmPlan, NumbersFitInto64Bits) {
  DlrmModel model = Tiny();
  model.tables[0] = {.rows = int64_t{1} << 40, .dimension = 2, .lookups = 1 << 20};
  EXPECT_TRUE(CheckDlrm(model));
  EXPECT_TRUE(CheckDlrmPlan(model, {.batch = 1 << 10}));
  EXPECT_FALSE(CheckDlrmPlan(model, {.ranks = 1 << 18, .batch = 1 << 24}));
  EXPECT_FALSE(CheckDlrmPlan(model, {.batch = 0}));
  EXPECT_FALSE(CheckDlrmPlan(model, {.ranks = 1 << 20}));
}

int64_t Random(std::mt19937& random, int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(random);
}

// For any plan, ranks agree, and together they look up all rows once.
TEST(DlrmJob, RandomModelsAndPlans) {
  std::mt19937 random(5);
  for (int round = 0; round < 16; ++round) {
    DlrmModel model{.dense = Random(random, 1, 9), .bottom = {Random(random, 1, 9)}};
    model.interaction = static_cast<Interaction>(Random(random, 0, 2));
    if (model.interaction == Interaction::kCross) {
      model.cross_layers = Random(random, 1, 3);
      model.cross_rank = Random(random, 1, 5);
    }
    const bool dot = model.interaction == Interaction::kDot;
    for (int64_t tables = Random(random, 1, 6); tables > 0; --tables) {
      model.tables.push_back({.rows = Random(random, 1, 200),
                              .dimension = dot ? model.bottom.back() : Random(random, 1, 9),
                              .lookups = Random(random, 1, 4)});
    }
    model.top = {Random(random, 1, 9), 1};
    ASSERT_TRUE(CheckDlrm(model));
    DlrmPlan plan{.ranks = Random(random, 1, 5), .batch = Random(random, 1, 8)};
    plan.replicate = Bytes{Random(random, 0, 800)};
    if (Random(random, 0, 1) == 1) plan.split_rows = Bytes{Random(random, 0, 4000)};
    if (Random(random, 0, 1) == 1) plan.most_columns = Random(random, 1, 4);
    plan.training = Random(random, 0, 3) > 0;
    plan.bucket = Bytes{Random(random, 1, 2000)};
    const std::string what = "round " + std::to_string(round);
    const auto job = MakeDlrmJob(model, plan);
    ASSERT_TRUE(job) << what << ": " << job.error().message;
    testing_sound::ExpectSound(*job, what);
    int64_t lookups = 0;
    int64_t reduced = 0;
    int64_t kept = 0;
    for (int64_t rank = 0; rank < plan.ranks; ++rank) {
      for (const StepWork& work : job->program(rank)) {
        if (work.name.ends_with(" lookup")) lookups += work.flops;
        kept += work.held.count - work.freed.count;
        if (rank == 0 && work.name == "gradients all_reduce") reduced += work.bytes.count;
      }
    }
    int64_t looked_up = 0;
    for (const EmbeddingTable& table : model.tables) looked_up += table.lookups * table.dimension;
    EXPECT_EQ(lookups, looked_up * plan.batch * plan.ranks) << what;
    const StepStates states = StatesOfRank(model, plan, PlaceTables(model, plan), 0);
    EXPECT_EQ(kept, 0) << what;
    EXPECT_EQ(reduced, plan.ranks > 1 ? states.gradients.count : 0) << what;
  }
}

TEST(DlrmFile, ReadsAModel) {
  const auto model = ParseDlrm(
      "format = 'etude-model'\nversion = 1\n[dlrm]\ndense = 3\nbottom = [4, 2]\ntop = [3, 1]\n"
      "type = 'bfloat16'\n[[tables]]\nrows = 10\nlookups = 3\n[[tables]]\nrows = 5\ncount = 2\n",
      "m.toml");
  ASSERT_TRUE(model) << model.error().message;
  DlrmModel expected = Tiny();
  expected.tables.push_back(expected.tables.back());
  expected.type = DType::kBFloat16;
  EXPECT_EQ(*model, expected);
}

TEST(DlrmFile, StartsFromAPreset) {
  const auto model = ParseDlrm("preset = 'rm1'\n[[tables]]\nrows = 7\ncount = 3\n", "m.toml");
  ASSERT_TRUE(model) << model.error().message;
  DlrmModel expected = FindPreset(DlrmPresets(), "rm1")->model;
  expected.tables = std::vector<EmbeddingTable>(3, {.rows = 7, .dimension = 32});
  EXPECT_EQ(*model, expected);
  const auto dot = ParseDlrm("preset = 'mlperf-dlrm-dcnv2'\n[dlrm]\ninteraction = 'dot'\n", "m");
  ASSERT_TRUE(dot) << dot.error().message;
  EXPECT_EQ(dot->cross_layers, 0);
}

TEST(DlrmFile, WhatDoesNotFitIsSaid) {
  const auto message = [](const std::string& text) {
    const auto model = ParseDlrm(text, "m.toml");
    return model ? "" : model.error().message;
  };
  const auto says = [&](const std::string& text, const std::string& part) {
    EXPECT_NE(message(text).find(part), std::string::npos) << message(text);
  };
  says("", "missing 'preset' or [dlrm]");
  says("preset = 'rm9'", "m.toml:1:10: preset: unknown 'rm9'; did you mean 'rm");
  says("[dlrm]\ndense = 3\nbottom = [2]\n", "missing 'top'");
  says("[dlrm]\ndense = 3\nbottom = [2]\ntop = [1]\n", "no [[tables]]");
  says("preset = 'rm1'\n[dlrm]\nbottom = 4\n", "a list of layer widths");
  says("preset = 'rm1'\n[dlrm]\ntop = [4]\n", "found 4 outputs, expected 1");
  says("preset = 'rm1'\n[dlrm]\ncross_rank = 4\n", "requires interaction");
  says("preset = 'rm1'\n[dlrm]\ninteraction = 'cross'\n", "missing 'cross_layers'");
  says("preset = 'criteo-kaggle'\n[[tables]]\nrows = 4\ndimension = 8\n",
       "expected 16, the output width of the bottom MLP");
  says("preset = 'rm1'\n[[tables]]\nlookups = 4\n", "[[tables]]: missing 'rows'");
  says("preset = 'rm1'\n[[tables]]\nrows = 4\ncount = 100000\n", "more than");
}

}  // namespace
}  // namespace etude
