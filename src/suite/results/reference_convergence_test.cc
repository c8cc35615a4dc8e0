#include "src/suite/results/reference_convergence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/base/statistics/variation.h"
#include "src/suite/results/calibration_text.h"
#include "src/suite/results/catalogue.h"

namespace etude::suite {
namespace {

using Verdict = Convergence::Verdict;

// A batch is a tenth of an epoch. The run is evaluated at each step and reaches 0.9 at the last
// one.
RunRecord RunWith(double epochs, bool reached = true) {
  RunRecord run{.task = "t",
                .scale = "smoke",
                .mode = "quality",
                .precision = "fp32",
                .batch = 10,
                .samples = 100,
                .parameters = 7,
                .optimizer = "sgd 0.1",
                .metric = "accuracy",
                .target = 0.9};
  const auto steps = static_cast<int64_t>(std::llround(epochs * 10));
  run.curve = {{.step = 1, .quality = 0.1}, {.step = steps, .quality = reached ? 0.9 : 0.8}};
  return run;
}

std::vector<RunRecord> RunsWith(std::initializer_list<double> epochs) {
  std::vector<RunRecord> runs;
  for (const double one : epochs) runs.push_back(RunWith(one));
  return runs;
}

ConvergenceReference ReferenceWith(std::vector<double> epochs) {
  return {.task = "t",
          .target = 0.9,
          .scale = "smoke",
          .precision = "fp32",
          .optimizer = "sgd 0.1",
          .batch = 10,
          .samples = 100,
          .parameters = 7,
          .evaluate_every = 1,
          .epochs = std::move(epochs)};
}

// The mean without minimum and maximum is 13, the deviation of all is √3.
ConvergenceReference TenRuns() { return ReferenceWith({10, 11, 12, 12, 13, 13, 14, 14, 15, 16}); }

Convergence Judge(const std::vector<RunRecord>& runs, const ConvergenceReference& reference) {
  return JudgeConvergence(runs, {&reference, 1});
}

// 13 - 1.833113 * √3 * √(1/8 + 1/3), with Student's quantile for 8 + 3 - 2. RCP_Checker of
// mlperf-logging 4.1.68 computes 10.85048 for a benchmark of five runs.
TEST(JudgeConvergence, TheBoundIsMlPerfs) {
  const Convergence found = Judge(RunsWith({12, 13, 14, 15, 16}), TenRuns());
  EXPECT_EQ(found.verdict, Verdict::kComparable);
  EXPECT_DOUBLE_EQ(*found.epochs, 14);
  EXPECT_DOUBLE_EQ(*found.reference, 13);
  EXPECT_NEAR(*found.least, 10.850485, 1e-6);
}

TEST(JudgeConvergence, FewerEpochsThanTheSpreadExplainsAreTooFast) {
  EXPECT_EQ(Judge(RunsWith({1, 10.8, 10.9, 10.9, 99}), TenRuns()).verdict, Verdict::kComparable);
  const Convergence fast = Judge(RunsWith({1, 10.8, 10.8, 10.9, 99}), TenRuns());
  EXPECT_EQ(fast.verdict, Verdict::kTooFast);
  EXPECT_EQ(ToText(fast),
            "10.83 epochs to the target (reference 13, at least 10.85): converged too fast: not "
            "comparable");
}

// 13 - 2.997952 * √3 * √(1/8 + 1) at 1 %; for 28 of 30 runs in the mean, whose quantile is not in
// the table, 13 - 1.690924 * √3 * √(1/8 + 1/28) at 5 %.
TEST(JudgeConvergence, TheBoundDependsOnTheNumberOfRuns) {
  EXPECT_NEAR(*Judge(RunsWith({13}), TenRuns()).least, 7.492410, 1e-6);
  const std::vector<RunRecord> many(30, RunWith(13));
  EXPECT_NEAR(*Judge(many, TenRuns()).least, 11.825881, 1e-5);
}

// Equal epochs have the spread of one evaluation interval: 12 - 2.997952 * (2 / √12) * √(1/8 + 1).
TEST(JudgeConvergence, EpochsAreKnownUpToAnEvaluation) {
  ConvergenceReference reference = ReferenceWith(std::vector<double>(10, 12));
  reference.evaluate_every = 20;
  RunRecord run = RunWith(12);
  run.curve.front().step = 20;
  EXPECT_NEAR(*Judge({run}, reference).least, 10.164137, 1e-6);
}

TEST(JudgeConvergence, ARunThatMissedIsTheSlowestOfFive) {
  std::vector<RunRecord> runs = RunsWith({12, 13, 14, 15});
  runs.push_back(RunWith(1, /*reached=*/false));
  EXPECT_DOUBLE_EQ(*Judge(runs, TenRuns()).epochs, 14);
  runs.front() = RunWith(1, /*reached=*/false);
  const Convergence missed = Judge(runs, TenRuns());
  EXPECT_EQ(missed.verdict, Verdict::kUnknown);
  EXPECT_EQ(VerdictText(missed), "unknown: the target was missed");
  EXPECT_FALSE(missed.epochs.has_value());
  EXPECT_DOUBLE_EQ(*missed.reference, 13);
}

TEST(JudgeConvergence, TheFirstEvaluationThatReachesTheTargetCounts) {
  RunRecord run = RunWith(20, /*reached=*/false);
  run.curve.insert(run.curve.begin() + 1, {.step = 120, .quality = 0.95});
  EXPECT_DOUBLE_EQ(*Judge({run}, TenRuns()).epochs, 12);
  run.higher_is_better = false;
  EXPECT_DOUBLE_EQ(*Judge({run}, TenRuns()).epochs, 0.1);
}

TEST(JudgeConvergence, AnEvaluationAtTheMostStepsIsNoSetting) {
  RunRecord run = RunWith(12, /*reached=*/false);
  run.curve = {{.step = 3, .quality = 0.1}};
  run.evaluate_every = 1;
  EXPECT_EQ(VerdictText(Judge({run}, TenRuns())), "unknown: the target was missed");
  run.evaluate_every = 2;
  EXPECT_EQ(VerdictText(Judge({run}, TenRuns())), "no reference for evaluations every 2 steps");
  // An older record.
  run.evaluate_every.reset();
  run.settings = NamedTexts{{"most-steps", "3"}};
  EXPECT_EQ(VerdictText(Judge({run}, TenRuns())), "unknown: the target was missed");
}

TEST(JudgeConvergence, AQualityThatIsNotANumberReachesNothing) {
  RunRecord run = RunWith(12);
  run.higher_is_better = false;
  for (QualityPoint& point : run.curve) point.quality = std::nan("");
  EXPECT_FALSE(Judge({run}, TenRuns()).epochs.has_value());
  // Also after a round trip through its record.
  const auto read = ParseRunRecord("x", ToJson(run).dump(), {});
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(std::isnan(read->curve.front().quality));
  EXPECT_FALSE(Judge({*read}, TenRuns()).epochs.has_value());
}

TEST(JudgeConvergence, OtherSettingsHaveNoReference) {
  const auto with = [](auto change) {
    RunRecord run = RunWith(12);
    change(run);
    const Convergence found = Judge({RunWith(12), run}, TenRuns());
    EXPECT_EQ(found.verdict, Verdict::kNoReference);
    EXPECT_FALSE(found.reference.has_value());
    EXPECT_TRUE(found.epochs.has_value());
    return VerdictText(found);
  };
  EXPECT_EQ(with([](RunRecord& run) { run.target = 0.85; }), "no reference for target 0.85");
  EXPECT_EQ(with([](RunRecord& run) { run.batch = 20; }), "no reference for batch 20");
  EXPECT_EQ(with([](RunRecord& run) { run.optimizer = "sgd 0.2"; }),
            "no reference for optimizer sgd 0.2");
  EXPECT_EQ(with([](RunRecord& run) { run.precision = "bf16"; }),
            "no reference for precision bf16");
  EXPECT_EQ(with([](RunRecord& run) { run.scale = "paper"; }), "no reference for the paper scale");
  EXPECT_EQ(with([](RunRecord& run) { run.curve.front().step = 5; }),
            "no reference for evaluations every 5 steps");
  EXPECT_EQ(with([](RunRecord& run) { run.samples = 50; }), "no reference for 50 training samples");
  EXPECT_EQ(with([](RunRecord& run) { run.parameters = 8; }), "no reference for 8 parameters");
  EXPECT_EQ(VerdictText(JudgeConvergence(RunsWith({12}), {})), "no reference for this task");
}

TEST(JudgeConvergence, OfSeveralReferencesTheOneWithTheSettingsCounts) {
  std::vector<ConvergenceReference> references = {TenRuns(), ReferenceWith({20, 22})};
  references.front().batch = 64;
  EXPECT_DOUBLE_EQ(*JudgeConvergence(RunsWith({12}), references).reference, 21);
}

TEST(JudgeConvergence, AReferenceThatMissedIsNone) {
  ConvergenceReference reference = TenRuns();
  reference.missed = 1;
  EXPECT_EQ(VerdictText(Judge(RunsWith({12}), reference)),
            "unknown: a run of the reference missed the target");
  EXPECT_EQ(VerdictText(Judge(RunsWith({12}), ReferenceWith({12}))),
            "unknown: the reference has fewer than two runs");
}

TEST(ParseReferences, ReadsWhatACalibrationSays) {
  const auto read = ParseReferences("c.json", R"({"format": "etude-suite-calibration", "version": 1,
      "tasks": [{"id": "t", "target": 0.9, "scale": "smoke", "precision": "fp32", "batch": 10,
                 "optimizer": "sgd 0.1", "evaluate_every": 1, "samples": 100, "parameters": 7,
                 "fitted": [{"seed": 1, "epochs_to_target": 11},
                            {"seed": 2, "epochs_to_target": null}],
                 "checked": [{"seed": 3, "reached": true, "epochs": 13, "epochs_to_target": 13}]
                }]})",
                                    {});
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ(read->front().epochs, (std::vector<double>{11, 13}));
  EXPECT_EQ(read->front().missed, 1);
  EXPECT_EQ(read->front().evaluate_every, 1);
}

TEST(ParseReferences, ReadsRepeatedRuns) {
  const auto read = ParseReferences("v.json", R"({"format": "etude-suite-calibration", "version": 1,
      "tasks": [{"id": "t", "target": 0.9, "scale": "smoke", "evaluate_every": 2,
                 "repeated": [{"seed": 1, "epochs_to_target": 11}, {"seed": 2, "epochs_to_target": 12},
                              {"seed": 3, "epochs_to_target": null}]}]})",
                                    {});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->front().epochs, (std::vector<double>{11, 12}));
  EXPECT_EQ(read->front().seeds, (std::vector<std::optional<int64_t>>{1, 2}));
  EXPECT_EQ(read->front().missed, 1);
}

// Old calibrations list runs that were checked when they ended, without settings.
TEST(ParseReferences, ReadsOldCalibrations) {
  const auto read = ParseReferences("c.json", R"({"format": "etude-suite-calibration", "version": 1,
      "tasks": [{"id": "t", "target": 0.9, "fitted": [{"seed": 1, "best": 0.93}],
                 "checked": [{"seed": 2, "reached": true, "epochs": 13},
                             {"seed": 3, "reached": false, "epochs": 40}]}]})",
                                    {});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->front().epochs, (std::vector<double>{13}));
  EXPECT_EQ(read->front().missed, 1);
  EXPECT_EQ(VerdictText(Judge(RunsWith({12}), read->front())),
            "unknown: the reference lacks some of its settings");
}

TEST(ParseReferences, WhatIsNoCalibrationIsRefusedWithItsPlace) {
  const auto read = ParseReferences("c.json", R"({"format": "etude-suite-calibration", "version": 1,
      "tasks": [{"id": "t", "target": "high"}]})",
                                    {});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(read.error().message, "c.json.tasks[0].target: found \"high\", expected a number");
}

// Three of twenty runs are faster than the spread explains: the bound would be 12.444 - 2.539 *
// 1.785 * √(1/18 + 1/3) = 9.62. The reference's own runs are never too fast.
TEST(JudgeConvergence, TheReferencesOwnRunsAreComparable) {
  const ConvergenceReference reference =
      ReferenceWith({8, 8, 8, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13});
  const Convergence found = Judge(RunsWith({8, 8, 8}), reference);
  EXPECT_EQ(found.verdict, Verdict::kComparable) << ToText(found);
  EXPECT_DOUBLE_EQ(*found.least, 8);
  EXPECT_EQ(Judge(RunsWith({8, 8, 7.9}), reference).verdict, Verdict::kTooFast);
}

// Makes a run with the settings and evaluations of a reference and this number of epochs.
RunRecord RunLike(const ConvergenceReference& reference, double epochs) {
  RunRecord run{.task = reference.task,
                .scale = reference.scale,
                .mode = "quality",
                .precision = reference.precision,
                .batch = *reference.batch,
                .samples = *reference.samples,
                .evaluate_every = reference.evaluate_every,
                .parameters = *reference.parameters,
                .optimizer = reference.optimizer,
                .target = reference.target};
  const double steps = epochs * static_cast<double>(run.samples) / static_cast<double>(run.batch);
  run.curve = {{.step = std::llround(steps), .quality = reference.target}};
  return run;
}

// Each calibrated seed alone, and any subset of ten, as drawn by `etude suite run --seeds N`.
TEST(BuiltInReferences, NoSetOfTheirOwnSeedsIsTooFast) {
  const auto read = BuiltInReferences({});
  ASSERT_TRUE(read) << read.error().message;
  std::set<std::string> tasks;
  for (const ConvergenceReference& reference : *read) {
    tasks.insert(reference.task);
    ASSERT_GE(reference.epochs.size(), 10U) << reference.task;
    std::vector<RunRecord> fastest;
    for (const double epochs : reference.epochs) fastest.push_back(RunLike(reference, epochs));
    std::ranges::sort(fastest, {}, [](const RunRecord& run) { return run.curve.front().step; });
    fastest.resize(10);
    for (uint32_t chosen = 1; chosen < 1U << 10U; ++chosen) {
      std::vector<RunRecord> runs;
      for (size_t i = 0; i < 10; ++i) {
        if ((chosen >> i & 1U) != 0) runs.push_back(fastest[i]);
      }
      const Convergence found = Judge(runs, reference);
      ASSERT_EQ(found.verdict, Verdict::kComparable)
          << reference.task << ", seeds " << chosen << ": " << ToText(found);
    }
  }
  EXPECT_EQ(tasks.size(), 19U);
}

// Measured variations are those of the intervals between evaluations that the catalogue gives, at
// most 0.3 standard deviations.
TEST(BuiltInReferences, VariationsAreMeasuredOftenEnough) {
  const auto read = ParseReferences("variation.json", VariationText(), {});
  ASSERT_TRUE(read) << read.error().message;
  for (const ConvergenceReference& reference : *read) {
    const TaskFacts* task = FindTask(reference.task);
    ASSERT_NE(task, nullptr) << reference.task;
    EXPECT_EQ(reference.missed, 0) << reference.task;
    if (!task->variation_interval) continue;
    EXPECT_EQ(reference.evaluate_every, task->variation_interval) << reference.task;
    const std::optional<Variation> variation = VariationOf(reference.epochs);
    ASSERT_TRUE(variation) << reference.task;
    const double interval = static_cast<double>(*reference.evaluate_every * *reference.batch) /
                            static_cast<double>(*reference.samples);
    EXPECT_LE(interval, 0.3 * variation->coefficient * variation->mean) << reference.task;
  }
}

}  // namespace
}  // namespace etude::suite
