#include "src/suite/results/score.h"

#include <gtest/gtest.h>

namespace etude::suite {
namespace {

RunRecord RunOf(int64_t seed, double seconds, bool reached = true) {
  return {.task = "t",
          .seed = seed,
          .batch = 10,
          .samples = 100,
          .complete = true,
          .reached = reached,
          .quality = 0.5,
          .steps = static_cast<int64_t>(seconds),
          .seconds = seconds};
}

TEST(ScoreOf, FewRunsAreAllCounted) {
  const Score score = ScoreOf({RunOf(1, 10), RunOf(2, 20), RunOf(3, 60)});
  EXPECT_TRUE(score.reached);
  EXPECT_DOUBLE_EQ(*score.seconds, 30);
}

TEST(ScoreOf, FromFiveRunsOnTheFastestAndTheSlowestAreDropped) {
  const Score score =
      ScoreOf({RunOf(1, 1), RunOf(2, 20), RunOf(3, 30), RunOf(4, 40), RunOf(5, 1000)});
  EXPECT_DOUBLE_EQ(*score.seconds, 30);
}

TEST(ScoreOf, ARunThatMissedIsTheSlowestOfFive) {
  const Score score =
      ScoreOf({RunOf(1, 1), RunOf(2, 20), RunOf(3, 30), RunOf(4, 40), RunOf(5, 5, false)});
  EXPECT_TRUE(score.reached);
  EXPECT_DOUBLE_EQ(*score.seconds, 30);
}

TEST(ScoreOf, ARunThatMissedOfFewerIsAMiss) {
  const Score score = ScoreOf({RunOf(1, 10), RunOf(2, 20, false)});
  EXPECT_FALSE(score.reached);
  EXPECT_FALSE(score.seconds.has_value());
}

TEST(ScoreOf, VariationIsOfEpochsToTheTarget) {
  // 1 and 3 epochs: mean 2, deviation √2.
  const Score score = ScoreOf({RunOf(1, 10), RunOf(2, 30)});
  EXPECT_NEAR(*score.variation, 0.70710678, 1e-6);
}

TEST(RunRecord, IsReadAsWritten) {
  RunRecord run = RunOf(7, 12.5);
  run.target = 0.9;
  run.curve = {
      {.step = 3, .seconds = 1.5, .evaluation_seconds = 0.25, .quality = 0.4, .loss = 2.5}};
  run.step_seconds = {0.1, 0.2};
  run.energy_j = 12.0;
  run.settings = NamedTexts{{"rate", "0.5"}};
  run.data_set = "spoken-digits";
  const auto text = ToJson(run).dump();
  const auto read = ParseRunRecord("x", text, {});
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(ToJson(*read).dump(), text);
}

TEST(RunRecord, MayBeOfBeforeSettingsWereKept) {
  auto json = ToJson(RunOf(7, 12.5));
  EXPECT_TRUE(json["settings"].is_null());
  EXPECT_TRUE(json["data_set"].is_null());
  json.erase("settings");
  json.erase("data_set");
  const auto read = ParseRunRecord("x", json.dump(), {});
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_FALSE(read->settings.has_value());
  EXPECT_TRUE(read->data_set.empty());
  EXPECT_EQ(ToText(*read).find(" on "), std::string::npos);
}

TEST(RunRecord, WhatIsNoRunIsRefusedWithItsPlace) {
  const auto wrong = ParseRunRecord("x.json", R"({"format": "etude-suite-run", "version": 1,
      "seed": "one"})",
                                    {});
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().code, ErrorCode::kBadInput);
  EXPECT_NE(wrong.error().message.find("seed"), std::string::npos);
}

}  // namespace
}  // namespace etude::suite
