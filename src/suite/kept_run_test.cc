#include "src/suite/kept_run.h"

#include <string>

#include <gtest/gtest.h>

namespace etude::suite {
namespace {

RunRecord KeptWith(const RunOptions& options, bool complete = true) {
  return {.task = "t",
          .scale = "smoke",
          .mode = "quality",
          .device = "cpu",
          .precision = "fp32",
          .batch = options.batch.value_or(64),
          .optimizer = "adam 0.002",
          .settings = SettingsOf(options),
          .complete = complete};
}

// Returns the message of CheckKept for `kept`; "" if it succeeds.
std::string Against(const RunRecord& kept, const RunOptions& options, std::string data_set = "") {
  const Status same = CheckKept("x", kept,
                                {.options = options,
                                 .task = "t",
                                 .mode = kept.mode,
                                 .ranks = 1,
                                 .data_set = std::move(data_set)});
  if (same) return "";
  EXPECT_EQ(same.error().code, ErrorCode::kUsage);
  return same.error().message;
}

TEST(CheckKept, EachSettingCounts) {
  const std::vector<RunOptions> others = {{.loss_scale = 8.0},
                                          {.threads = 2},
                                          {.deterministic = true},
                                          {.batch = 64},
                                          {.optimizer = OptimizerOptions::Kind::kSgd},
                                          {.rate = 0.5},
                                          {.evaluate_every = 3},
                                          {.most_steps = 7},
                                          {.target = 0.5},
                                          {.to_the_end = true},
                                          {.shuffled_labels = true},
                                          {.frozen = true}};
  for (const RunOptions& other : others) {
    const NamedTexts settings = SettingsOf(other);
    ASSERT_EQ(settings.size(), 1);
    SCOPED_TRACE(settings.begin()->first);
    const std::string option = "--" + settings.begin()->first;
    EXPECT_EQ(Against(KeptWith(other), other), "");
    EXPECT_NE(Against(KeptWith({}), other).find("an earlier run without " + option),
              std::string::npos);
    EXPECT_NE(Against(KeptWith(other), {}).find("an earlier run with " + option),
              std::string::npos);
  }
  EXPECT_EQ(Against(KeptWith({.rate = 0.5}), {.rate = 0.25}),
            "x: found an earlier run with rate 0.5, expected 0.25; use another --output");
  EXPECT_EQ(Against(KeptWith({}), {.precision = Precision::kBf16}),
            "x: found an earlier run with precision fp32, expected bf16; use another --output");
}

TEST(CheckKept, ARecordIsOfTheRunThatItsNameSays) {
  const auto against = [](auto change) {
    RunRecord kept = KeptWith({});
    change(kept);
    const RunOptions options;
    const Status same =
        CheckKept("x", kept, {.options = options, .task = "t", .mode = "quality", .data_set = ""});
    EXPECT_FALSE(same.has_value());
    EXPECT_EQ(same.error().code, ErrorCode::kBadInput);
    return same.error().message;
  };
  EXPECT_EQ(against([](RunRecord& kept) { kept.task = "u"; }),
            "x: found a run with id u, expected t");
  EXPECT_EQ(against([](RunRecord& kept) { kept.scale = "paper"; }),
            "x: found a run with scale paper, expected smoke");
  EXPECT_EQ(against([](RunRecord& kept) { kept.mode = "steps"; }),
            "x: found a run with mode steps, expected quality");
  EXPECT_EQ(against([](RunRecord& kept) { kept.seed = 7; }),
            "x: found a run with seed 7, expected 0");
}

TEST(CheckKept, ARunThatGoesOnMayHaveOtherMostSteps) {
  const RunRecord part = KeptWith({.rate = 0.5, .most_steps = 10}, /*complete=*/false);
  EXPECT_EQ(Against(part, {.rate = 0.5, .most_steps = 20}), "");
  EXPECT_EQ(Against(part, {.rate = 0.5}), "");
  EXPECT_NE(Against(part, {.most_steps = 10}), "");
}

TEST(CheckKept, ARecordWithoutSettingsHasTheTasksOwn) {
  RunRecord old = KeptWith({});
  old.settings.reset();
  old.threads = 2;
  EXPECT_EQ(Against(old, {}), "");
  EXPECT_EQ(
      Against(
          old,
          {.threads = 2, .batch = 64, .optimizer = OptimizerOptions::Kind::kAdam, .rate = 0.002}),
      "");
  EXPECT_NE(Against(old, {.threads = 1}), "");
  EXPECT_NE(Against(old, {.rate = 0.02}), "");
  EXPECT_NE(Against(old, {.optimizer = OptimizerOptions::Kind::kSgd}), "");
  EXPECT_NE(Against(old, {.target = 0.5}), "");
  EXPECT_NE(Against(old, {.frozen = true}), "");
  // As in a calibration.
  EXPECT_EQ(Against(old, {.frozen = true, .kind_in_name = true}), "");
  EXPECT_EQ(Against(old, {.to_the_end = true, .kind_in_name = true}), "");
  old.target = 0.5;
  old.target_origin = kGivenTarget;
  EXPECT_EQ(Against(old, {.target = 0.5}), "");
  EXPECT_NE(Against(old, {}), "");
}

TEST(CheckKept, StepsModeComparesTheStepsAndDataSetsTheirNames) {
  RunRecord kept = KeptWith({});
  kept.mode = "steps";
  kept.step_seconds = {0.1, 0.1, 0.1};
  kept.steps = 5;
  EXPECT_EQ(Against(kept, {.warmup = 2, .timed_steps = 3}), "");
  EXPECT_NE(Against(kept, {.warmup = 1, .timed_steps = 3}), "");
  EXPECT_NE(Against(kept, {.warmup = 2, .timed_steps = 4}), "");
  kept = KeptWith({});
  EXPECT_EQ(Against(kept, {}, "b"), "");
  kept.data_set = "a";
  EXPECT_EQ(Against(kept, {}), "");
  EXPECT_NE(Against(kept, {}, "b").find("with data set a, expected b"), std::string::npos);
}

}  // namespace
}  // namespace etude::suite
