#include "src/suite/subset/repeatability.h"

#include <cmath>

#include <gtest/gtest.h>

#include "src/suite/results/catalogue.h"

namespace etude::suite {
namespace {

using Judged = Repeatability::Verdict;

// 100 steps are an epoch.
TaskFactors FactorsWith(const std::vector<double>& epochs, int64_t evaluate_every) {
  TaskFactors task{.task = "spatial-transformer",
                   .optimizer = "adam 0.002",
                   .parameters = 27360,
                   .batch = 40,
                   .samples = 4000};
  for (const double value : epochs) {
    task.runs.push_back({.seed = std::ssize(task.runs) + 1,
                         .reached = value > 0,
                         .epochs = value > 0 ? value : 99,
                         .evaluate_every = evaluate_every});
  }
  return task;
}

Repeatability Of(const TaskFactors& task, const std::vector<ConvergenceReference>& references = {},
                 const std::vector<Score>& kept = {}) {
  return RepeatabilityOf(task, "smoke", kept, references, 0.02);
}

TEST(RepeatabilityOf, IsShownOrNot) {
  // Deviations of 0.05, 0.158 and 1.58 epochs; evaluations each hundredth of an epoch.
  EXPECT_EQ(Of(FactorsWith({10, 10.05, 9.95, 10.05, 9.95}, 1)).verdict, Judged::kShown);
  EXPECT_EQ(Of(FactorsWith({9.8, 9.9, 10, 10.1, 10.2}, 1)).verdict, Judged::kNotShown);
  EXPECT_EQ(Of(FactorsWith({8, 9, 10, 11, 12}, 1)).verdict, Judged::kShownAbove);
  EXPECT_EQ(Of(FactorsWith({10}, 1)).verdict, Judged::kUnknown);
}

TEST(RepeatabilityOf, MeanAndStepsAreThoseOfTheRuns) {
  const Repeatability found = Of(FactorsWith({8, 9, 10, 11, 12}, 1));
  EXPECT_NEAR(*found.mean, 10, 1e-12);
  EXPECT_NEAR(*found.steps, 1000, 1e-9);
  EXPECT_NEAR(found.variation->coefficient, std::sqrt(2.5) / 10, 1e-12);
  EXPECT_EQ(found.coarse, false);
}

TEST(RepeatabilityOf, EqualEpochsOfRareEvaluationsShowNothing) {
  // An evaluation each half epoch: a deviation of up to 0.5 / √12 is invisible.
  const Repeatability found = Of(FactorsWith({5, 5, 5, 5, 5}, 50));
  EXPECT_EQ(found.variation->coefficient, 0);
  EXPECT_EQ(found.verdict, Judged::kNotShown);
  EXPECT_EQ(found.coarse, true);
  EXPECT_EQ(found.MostSteps(), 1);
  // 0.3 of the deviation of 158 steps are 47.4 steps.
  EXPECT_EQ(Of(FactorsWith({8, 9, 10, 11, 12}, 1)).MostSteps(), 47);
  EXPECT_EQ(Of(FactorsWith({8, 9, 10, 11, 12}, 47)).coarse, false);
  EXPECT_EQ(Of(FactorsWith({8, 9, 10, 11, 12}, 48)).coarse, true);
}

TEST(RepeatabilityOf, AMissedRunIsNeverRepeatable) {
  const Repeatability found = Of(FactorsWith({10, 10.05, 9.95, 10.05, 9.95, 0}, 1));
  EXPECT_EQ(found.missed, 1U);
  EXPECT_EQ(found.verdict, Judged::kNotShown);
}

ConvergenceReference ReferenceWith(int64_t batch) {
  return {.task = "spatial-transformer",
          .target = FindTask("spatial-transformer")->smoke.quality,
          .scale = "smoke",
          .precision = "fp32",
          .optimizer = "adam 0.002",
          .batch = batch,
          .samples = 4000,
          .parameters = 27360,
          .evaluate_every = 10,
          .epochs = {11, 12, 13},
          .seeds = {2, 7, std::nullopt}};
}

TEST(RepeatabilityOf, TakesOtherSeedsOfTheCalibration) {
  const TaskFactors task = FactorsWith({10, 11}, 10);
  const Repeatability found = Of(task, {ReferenceWith(40)});
  EXPECT_EQ(found.epochs, (std::vector<double>{10, 11, 12}));  // seed 2 is there already
  EXPECT_EQ(found.calibrated, 1U);
  EXPECT_EQ(Of(task, {ReferenceWith(64)}).epochs.size(), 2U);
}

TEST(RepeatabilityOf, WithoutRunsTakesTheCalibration) {
  const Repeatability found = Of(FactorsWith({}, 0), {ReferenceWith(64), ReferenceWith(40)});
  EXPECT_EQ(found.epochs, (std::vector<double>{11, 12}));
  EXPECT_EQ(found.calibrated, 2U);
  EXPECT_EQ(found.evaluate_every, 10);
  EXPECT_TRUE(found.variation);
  EXPECT_TRUE(Of(FactorsWith({}, 0), {ReferenceWith(64)}).epochs.empty());
}

ConvergenceReference ReferenceWithInterval(int64_t evaluate_every) {
  ConvergenceReference reference = ReferenceWith(40);
  reference.evaluate_every = evaluate_every;
  reference.epochs = {9.5, 10.4, 11.2, 12.1, 13.3};
  reference.seeds = {1, 2, 3, 4, 5};
  return reference;
}

TEST(RepeatabilityOf, TheShortestIntervalWithEnoughSeedsCounts) {
  // Two seeds with evaluations every 50 steps, five others of the calibration every 5.
  const Repeatability found = Of(FactorsWith({10, 11}, 50), {ReferenceWithInterval(5)});
  EXPECT_EQ(found.epochs, (std::vector<double>{9.5, 10.4, 11.2, 12.1, 13.3}));
  EXPECT_EQ(found.evaluate_every, 5);
  EXPECT_EQ(found.calibrated, 5U);
  EXPECT_EQ(found.left_out, 2U);
  EXPECT_EQ(found.coarse, false);
  // Five own seeds with a shorter interval.
  EXPECT_EQ(Of(FactorsWith({10, 11, 12, 13, 14}, 4), {ReferenceWithInterval(5)}).calibrated, 0U);
  // Two do not suffice.
  EXPECT_EQ(Of(FactorsWith({10, 11}, 4), {ReferenceWithInterval(5)}).calibrated, 5U);
}

TEST(RepeatabilityOf, WithoutEnoughSeedsMostSeedsCount) {
  const Repeatability found = Of(FactorsWith({10, 11, 12, 13}, 50), {ReferenceWith(40)});
  EXPECT_EQ(found.epochs, (std::vector<double>{10, 11, 12, 13}));
  EXPECT_EQ(found.evaluate_every, 50);
}

TEST(RepeatabilityOf, ARunThatMissedCountsForAnyInterval) {
  const Repeatability found = Of(FactorsWith({10, 0}, 50), {ReferenceWithInterval(5)});
  EXPECT_EQ(found.epochs.size(), 5U);
  EXPECT_EQ(found.missed, 1U);
  EXPECT_EQ(found.left_out, 1U);
}

TEST(RepeatabilityOf, KeptRunsReplaceRunsOfTheSameSeed) {
  RunRecord run{.task = "spatial-transformer",
                .scale = "smoke",
                .mode = "quality",
                .seed = 2,
                .precision = "fp32",
                .batch = 40,
                .samples = 4000,
                .evaluate_every = 10,
                .parameters = 27360,
                .metric = "top-1 accuracy",
                .target = FindTask("spatial-transformer")->smoke.quality,
                .curve = {{.step = 1400, .quality = 0.99}}};
  RunRecord frozen = run;
  frozen.seed = 3;
  frozen.settings = NamedTexts{{"frozen", "yes"}};
  Score score;
  score.runs = {run, frozen};
  EXPECT_EQ(Of(FactorsWith({10, 11}, 10), {}, {score}).epochs, (std::vector<double>{10, 14}));
}

}  // namespace
}  // namespace etude::suite
