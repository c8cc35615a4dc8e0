#include "src/suite/subset/subset.h"

#include <cmath>

#include <gtest/gtest.h>

namespace etude::suite {
namespace {

using Purpose = SubsetOptions::Purpose;

struct MadeTask {
  std::string id;
  double parameters = 0;  // decimal logarithms
  double flop = 0;
  double epochs = 0;     // mean
  double spread = 0.05;  // epochs of two runs: 1 ± spread times the mean
};

CharacterizedTasks Characterized(const std::vector<MadeTask>& tasks) {
  CharacterizedTasks found{.path = "c.json", .scale = "smoke", .tasks = {}};
  for (const MadeTask& made : tasks) {
    TaskFactors& task = found.tasks.emplace_back();
    task.task = made.id;
    task.parameters = std::llround(std::pow(10, made.parameters));
    task.batch = 1;
    task.samples = 100000;
    task.flop = std::pow(10, made.flop);
    task.bytes = std::pow(10, made.flop - 1);
    const double epochs = std::pow(10, made.epochs);
    for (const double sign : {-1.0, 1.0}) {
      task.runs.push_back({.seed = sign < 0 ? 1 : 2,
                           .reached = true,
                           .epochs = epochs * (1 + sign * made.spread),
                           .evaluate_every = 1});
    }
  }
  return found;
}

// Three pairs of similar tasks.
const std::vector<MadeTask> kPairs = {
    {"image-classification", 5, 9, 1},  {"face-embedding", 5.1, 9.1, 1},
    {"recommendation", 6, 6, 0.5},      {"learning-to-rank", 6.1, 6.1, 0.5},
    {"spatial-transformer", 4, 7, 1.5}, {"speech-recognition", 4.1, 7.1, 1.5},
};

std::vector<std::string> Ids(const std::vector<const TaskFacts*>& tasks) {
  std::vector<std::string> ids;
  for (const TaskFacts* task : tasks) ids.emplace_back(task->id);
  return ids;
}

// Without the filter by repeatability.
SubsetOptions AnyVariation() { return {.most_variation = 10}; }

TEST(ChooseSubset, TakesTheCheapestOfEachPair) {
  std::vector<MadeTask> tasks = kPairs;
  for (MadeTask& task : tasks) task.spread = 0.01;
  const auto found = ChooseSubset(Characterized(tasks), {}, {}, AnyVariation());
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->by_pca.count, 3U);
  EXPECT_EQ(Ids(found->picked()), (std::vector<std::string>{"face-embedding", "spatial-transformer",
                                                            "learning-to-rank"}));
  const auto why = [&](std::string_view id) {
    for (const Subset::Task& task : found->tasks) {
      if (task.facts->id == id) return task.why;
    }
    return std::string();
  };
  EXPECT_EQ(why("image-classification"), "represented by face-embedding");
  EXPECT_EQ(why("face-embedding"), "cheapest near the centre of a cluster of 2");
  EXPECT_EQ(found->missing.size(), Catalogue().size() - 6);
  // 3.4, 0.06 and 0.1 hours.
  EXPECT_NEAR(*found->sets[2].recalled_hours, 3.56, 1e-9);
  EXPECT_NEAR(*found->sets[2].saved, 1 - 3.56 / RecalledHoursOfSuite(), 1e-12);
}

TEST(ChooseSubset, TasksWithoutAnAcceptedMetricFallOut) {
  std::vector<MadeTask> tasks = kPairs;
  for (MadeTask& task : tasks) task.spread = 0.01;
  tasks.push_back({"image-generation", 7, 8, 0, 0.01});
  const auto found = ChooseSubset(Characterized(tasks), {}, {}, AnyVariation());
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->tasks[1].facts->id, "image-generation");
  EXPECT_FALSE(found->tasks[1].candidate);
  EXPECT_EQ(found->tasks[1].why, "no accepted metric");
  EXPECT_FALSE(found->tasks[1].z_scores.empty());  // but it has a place
}

TEST(ChooseSubset, WithoutRepeatableTasksTakesTheMoreRepeatableHalf) {
  std::vector<MadeTask> tasks = kPairs;
  tasks.push_back({"advertising", 5, 5, 0.1});
  tasks.push_back({"object-detection", 5, 8, 0.1});
  for (size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].spread = 0.3 - 0.03 * static_cast<double>(i);
  }
  const auto found = ChooseSubset(Characterized(tasks), {}, {}, {});
  ASSERT_TRUE(found.has_value());
  std::vector<std::string> candidates;
  for (const Subset::Task& task : found->tasks) {
    if (task.candidate) candidates.emplace_back(task.facts->id);
  }
  EXPECT_EQ(candidates, (std::vector<std::string>{"speech-recognition", "object-detection",
                                                  "spatial-transformer", "advertising"}));
  ASSERT_FALSE(found->notes.empty());
  EXPECT_EQ(found->notes[0].substr(0, 55),
            "repeatability: no task is shown to vary by at most 2 %,");
}

TEST(ChooseSubset, ExpensiveTasksMayFallOut) {
  std::vector<MadeTask> tasks = kPairs;
  for (MadeTask& task : tasks) task.spread = 0.01;
  SubsetOptions options = AnyVariation();
  options.most_hours = 42;
  const auto found = ChooseSubset(Characterized(tasks), {}, {}, options);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->tasks[0].why, "more than 42 recalled hours");  // image classification
  EXPECT_FALSE(found->tasks[0].candidate);
  EXPECT_EQ(found->by_pca.labels[0], found->by_pca.labels[2]);  // nearest: face embedding
  options.most_hours = 0.15;
  EXPECT_EQ(ChooseSubset(Characterized(tasks), {}, {}, options).error().code, ErrorCode::kBadInput);
}

TEST(ChooseSubset, CoverageIsAShareOfTheRangeOfAll) {
  std::vector<MadeTask> tasks = {{"image-classification", 4, 6, 0, 0.01},
                                 {"object-detection", 5, 7, 1, 0.01},
                                 {"learning-to-rank", 6, 6, 0.5, 0.01},
                                 {"spatial-transformer", 8, 10, 2, 0.01}};
  const auto found = ChooseSubset(Characterized(tasks), {}, {}, AnyVariation());
  ASSERT_TRUE(found.has_value());
  const TaskSet& published = found->sets[3];
  EXPECT_EQ(published.placed, 3U);
  EXPECT_NEAR(published.ranges[0].share, 0.5, 1e-6);   // 4 to 6 of 4 to 8
  EXPECT_NEAR(published.ranges[1].share, 0.25, 1e-6);  // 6 to 7 of 6 to 10
  EXPECT_NEAR(published.ranges[2].share, 0.5, 1e-4);   // 0 to 1 of 0 to 2
  EXPECT_NEAR(*found->sets[0].box, 1, 1e-12);
  EXPECT_NEAR(*found->sets[0].area, 1, 1e-12);
  EXPECT_NEAR(*published.recalled_hours, 132.6, 1e-9);
}

TEST(ChooseSubset, FewTasksAreAnError) {
  std::vector<MadeTask> tasks(kPairs.begin(), kPairs.begin() + 3);
  EXPECT_EQ(ChooseSubset(Characterized(tasks), {}, {}, {}).error().message,
            "c.json: found 3 tasks with all factors, expected at least 4");
  EXPECT_EQ(ChooseSubset(Characterized({kPairs[0]}), {}, {}, {}).error().message,
            "c.json: found 1 task with all factors, expected at least 4");
  tasks = kPairs;
  for (MadeTask& task : tasks) task = {task.id, 5, 9, 1, 0.05};
  EXPECT_EQ(ChooseSubset(Characterized(tasks), {}, {}, {}).error().message,
            "c.json: found the same factors for all tasks, expected different ones");
  CharacterizedTasks file = Characterized(kPairs);
  for (size_t i = 0; i < 3; ++i) file.tasks[i].runs.clear();
  EXPECT_EQ(ChooseSubset(file, {}, {}, {}).error().message,
            "c.json: found 3 tasks with all factors, expected at least 4 (unknown: log10 epochs to "
            "the target: image-classification, face-embedding, recommendation)");
  file = Characterized(kPairs);
  for (size_t i = 0; i < 3; ++i) file.tasks[i].runs.resize(1);
  EXPECT_EQ(
      ChooseSubset(file, {}, {}, {}).error().message,
      "c.json: found 3 tasks to choose from, expected at least 4 (fewer than two runs reached "
      "the target: image-classification, face-embedding, recommendation)");
  EXPECT_EQ(ChooseSubset(Characterized(kPairs), {}, {}, {.clusters = 9}).error().code,
            ErrorCode::kBadInput);
}

TEST(ChooseSubset, CharacterizationNeedsNoRuns) {
  CharacterizedTasks file = Characterized(kPairs);
  for (size_t i = 0; i < file.tasks.size(); ++i) {
    TaskFactors& task = file.tasks[i];
    task.runs.clear();
    const double part = 0.1 + 0.3 * static_cast<double>(i / 2) + 0.01 * static_cast<double>(i % 2);
    task.hot_spots = {{"GEMM", part}, {"ReLU", 0.2}, {"convolution", 0.8 - part}};
    task.parallel_efficiency = 0.5 + 0.1 * static_cast<double>(i);
  }
  file.tasks[0].parallel_efficiency.reset();
  const auto found = ChooseSubset(file, {}, {}, {.purpose = Purpose::kCharacterization});
  ASSERT_TRUE(found.has_value()) << found.error().message;
  std::vector<std::string> keys;
  for (const Factor& factor : found->factors) keys.push_back(factor.key);
  EXPECT_EQ(keys, (std::vector<std::string>{"share_of_GEMM", "share_of_convolution"}));
  EXPECT_EQ(found->by_pca.count, 3U);
  EXPECT_EQ(found->notes[0],
            "parallel efficiency: unknown for image-classification; left out for all tasks");
  EXPECT_EQ(found->notes.back(), "equal for all tasks, left out: time in ReLU, log10 FLOP a byte");
}

TEST(ChooseSubset, RecalledFiguresAreConsistent) {
  // AIBench's abstract: the ranking subset of 17 tasks saves 41 %. The suite lacks tasks of 15.3 of
  // these 225 hours, or has them.
  EXPECT_GE(RecalledHoursOfSuite(), 209.7 - 1e-6);
  EXPECT_LE(RecalledHoursOfSuite(), 225.1);
  EXPECT_EQ(SourceOfSubset(Purpose::kRanking), "found");
  EXPECT_EQ(SourceOfSubset(Purpose::kCharacterization), "recalled");
}

}  // namespace
}  // namespace etude::suite
