#include "src/suite/subset/subset_ranking.h"

#include <cmath>

#include <gtest/gtest.h>

namespace etude::suite {
namespace {

const std::vector<std::string> kIds = {"image-classification", "object-detection",
                                       "spatial-transformer", "learning-to-rank", "advertising"};

CharacterizedTasks FiveTasks() {
  CharacterizedTasks file{.path = "c.json", .scale = "smoke", .tasks = {}};
  for (size_t i = 0; i < kIds.size(); ++i) {
    TaskFactors& task = file.tasks.emplace_back();
    const auto number = static_cast<double>(i);
    task.task = kIds[i];
    task.parameters = 1000 << (2 * i);
    task.batch = 10;
    task.samples = 1000;
    task.flop = std::pow(10, 6 + std::fmod(number * 2.5, 4));
    for (int64_t seed = 1; seed <= 5; ++seed) {
      task.runs.push_back(
          {.seed = seed, .reached = true, .epochs = 2 + number, .evaluate_every = 1});
    }
  }
  return file;
}

// A system with a step time of each task, in milliseconds.
RankedSystem SystemWith(const std::string& name, const std::vector<double>& steps,
                        int64_t batch = 10) {
  RankedSystem system{.name = name, .scores = {}};
  for (size_t i = 0; i < steps.size(); ++i) {
    RunRecord run{.task = kIds[i],
                  .scale = "smoke",
                  .mode = "steps",
                  .precision = "fp32",
                  .batch = batch,
                  .complete = true,
                  .step_seconds = {steps[i] / 1000, steps[i] / 1000, steps[i] / 1000}};
    system.scores.push_back(ScoreOf({run}));
  }
  return system;
}

Subset ChosenOf(const CharacterizedTasks& file) {
  auto found = ChooseSubset(file, {}, {}, {.most_variation = 10});
  EXPECT_TRUE(found.has_value()) << found.error().message;
  return *found;
}

const SubsetRanking::Row& RowOf(const SubsetRanking& ranking, std::string_view name) {
  for (const SubsetRanking::Row& row : ranking.rows) {
    if (row.name.starts_with(name)) return row;
  }
  ADD_FAILURE() << name;
  return ranking.rows.front();
}

TEST(TestSubset, ProportionalSystemsAgreeByEachSubset) {
  const CharacterizedTasks file = FiveTasks();
  const auto found =
      TestSubset(ChosenOf(file), file,
                 {SystemWith("a", {4, 8, 12, 16, 20}), SystemWith("b", {2, 4, 6, 8, 10}),
                  SystemWith("c", {1, 2, 3, 4, 5})},
                 1);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->by_all.tasks, kIds);
  EXPECT_EQ(found->subsets, 10U);  // threes of five
  EXPECT_TRUE(found->every);
  for (const char* name : {"chosen here", "AIBench, ranking", "best", "mean"}) {
    const SubsetRanking::Row& row = RowOf(*found, name);
    ASSERT_TRUE(row.tau.has_value()) << name;
    EXPECT_EQ(row.tau->value, 1);
    EXPECT_EQ(row.tau->low, 1);
  }
  const SubsetRanking::Row& other = RowOf(*found, "AIBench, characterization");
  EXPECT_FALSE(other.tau.has_value());
  EXPECT_EQ(other.why, "not ranked: image-to-text, speech-recognition");
  // 200 steps of 4 ms: the mean steps to the target of the first task.
  EXPECT_NEAR(*found->by_all.by_task[0].seconds, 0.8, 1e-9);
  ASSERT_EQ(found->speeds.size(), 3U);
  EXPECT_NEAR(found->speeds[2], 4, 1e-9);
}

TEST(TestSubset, ADiscordantPairLowersTau) {
  const CharacterizedTasks file = FiveTasks();
  // By the published three, c is faster than b; by all five it is slower.
  const auto found = TestSubset(ChosenOf(file), file,
                                {SystemWith("a", {8, 8, 8, 8, 8}), SystemWith("b", {4, 4, 4, 4, 4}),
                                 SystemWith("c", {3, 3, 50, 3, 50})},
                                1);
  ASSERT_TRUE(found.has_value());
  const SubsetRanking::Row& row = RowOf(*found, "AIBench, ranking");
  EXPECT_NEAR(row.tau->value, -1.0 / 3, 1e-12);  // by all: b, a, c; by the three: c, b, a
  EXPECT_LT(row.tau->low, row.tau->value);
  EXPECT_NEAR(RowOf(*found, "best").tau->value, 1, 1e-12);
}

TEST(TestSubset, OtherBatchesCountBySamples) {
  const CharacterizedTasks file = FiveTasks();
  const auto found =
      TestSubset(ChosenOf(file), file,
                 {SystemWith("a", {4, 4, 4, 4, 4}), SystemWith("b", {6, 6, 6, 6, 6}, 20)}, 1);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_NEAR(found->by_all.systems[1].speed->value, 4.0 / 3, 1e-9);
  EXPECT_EQ(found->notes.back(),
            "systems have different batches: steps count as if all batches needed the same epochs");
}

TEST(TestSubset, TasksThatOneSystemLacksAreNamed) {
  const CharacterizedTasks file = FiveTasks();
  const auto found = TestSubset(
      ChosenOf(file), file, {SystemWith("a", {4, 4, 4, 4, 4}), SystemWith("b", {6, 6, 6, 6})}, 1);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->notes[0],
            "not ranked, because a system did not run them, missed their targets or converged too "
            "fast: advertising");
  EXPECT_EQ(TestSubset(ChosenOf(file), file, {SystemWith("a", {1})}, 1).error().code,
            ErrorCode::kUsage);
}

}  // namespace
}  // namespace etude::suite
