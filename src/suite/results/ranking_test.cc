#include "src/suite/results/ranking.h"

#include <gtest/gtest.h>

namespace etude::suite {
namespace {

Score ScoreWith(const std::string& task, const std::vector<double>& seconds) {
  std::vector<RunRecord> runs;
  for (const double time : seconds) {
    runs.push_back({.task = task,
                    .scale = "smoke",
                    .mode = "quality",
                    .seed = std::ssize(runs),
                    .complete = true,
                    .reached = time > 0,
                    .seconds = time});
  }
  return ScoreOf(std::move(runs));
}

TEST(RankSystems, SpeedIsTheGeometricMeanOfRatios) {
  // Twice and eight times as fast: the geometric mean is 4.
  const auto ranking =
      RankSystems({{"slow", {ScoreWith("a", {20, 20, 20}), ScoreWith("b", {80, 80, 80})}},
                   {"fast", {ScoreWith("a", {10, 10, 10}), ScoreWith("b", {10, 10, 10})}}},
                  1);
  ASSERT_TRUE(ranking.has_value());
  EXPECT_NEAR(ranking->systems[1].speed->value, 4, 1e-9);
  EXPECT_EQ(ranking->systems[1].rank, 1);
  EXPECT_EQ(ranking->systems[0].rank, 2);
  EXPECT_NEAR(ranking->systems[0].speed->value, 1, 1e-9);
}

TEST(RankSystems, SystemsThatCannotBeToldApartShareTheirRanks) {
  const auto ranking = RankSystems({{"a", {ScoreWith("t", {10, 12, 14, 9, 13, 11})}},
                                    {"b", {ScoreWith("t", {11, 13, 10, 12, 9, 14})}}},
                                   1);
  ASSERT_TRUE(ranking.has_value());
  for (const Ranking::SystemRow& row : ranking->systems) {
    EXPECT_EQ(row.best_rank, 1);
    EXPECT_EQ(row.worst_rank, 2);
  }
}

TEST(RankSystems, ATaskThatOneMissedDoesNotRank) {
  const auto ranking = RankSystems({{"a", {ScoreWith("t", {10, 10}), ScoreWith("u", {5, 5})}},
                                    {"b", {ScoreWith("t", {0, 0}), ScoreWith("u", {10, 10})}}},
                                   1);
  ASSERT_TRUE(ranking.has_value());
  EXPECT_EQ(ranking->tasks, std::vector<std::string>{"u"});
  EXPECT_EQ(ranking->systems[0].rank, 1);
}

TEST(RankSystems, RunsThatConvergedTooFastDoNotRank) {
  const auto with = [](Convergence::Verdict verdict, std::vector<double> seconds) {
    Score score = ScoreWith("t", seconds);
    score.convergence = Convergence{.verdict = verdict, .epochs = 2, .reference = 5, .least = 4};
    return score;
  };
  const Score fair = with(Convergence::Verdict::kComparable, {10, 10, 10});
  const Score fast = with(Convergence::Verdict::kTooFast, {1, 1, 1});
  const Score other = ScoreWith("u", {5, 5, 5});
  const Score slower = ScoreWith("u", {10, 10, 10});
  const auto ranking = RankSystems({{"a", {fair, other}}, {"b", {fast, slower}}}, 1);
  ASSERT_TRUE(ranking.has_value());
  EXPECT_EQ(ranking->tasks, std::vector<std::string>{"u"});
  EXPECT_NEAR(ranking->systems[1].speed->value, 0.5, 1e-9);
  EXPECT_TRUE(ranking->by_task[0].speed.has_value());
  EXPECT_FALSE(ranking->by_task[1].speed.has_value());
  EXPECT_NEAR(*ranking->by_task[1].seconds, 1, 1e-9);
  EXPECT_EQ(ranking->notes, std::vector<std::string>{
                                "b: t: 2 epochs to the target (reference 5, at least 4): converged "
                                "too fast: not comparable; excluded from the ranking"});
  // Without a valid first system nothing is compared, and without another task nobody is ranked.
  const auto first = RankSystems({{"b", {fast}}, {"a", {fair}}}, 1);
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(first->by_task[1].speed.has_value());
  EXPECT_EQ(first->systems[0].rank, 0);
}

TEST(RankSystems, ATasksTimeIsItsScores) {
  const std::vector<std::vector<double>> all = {{3, 1, 2},           {3, 1, 2, 9},
                                                {3, 1, 2, 9, 20},    {3, 1, 2, 9, 0},
                                                {3, 1, 2, 9, 20, 0}, {3, 0, 2, 9, 20, 0}};
  for (const std::vector<double>& seconds : all) {
    const Score score = ScoreWith("t", seconds);
    const auto ranking = RankSystems({{"a", {score}}, {"b", {ScoreWith("t", {4})}}}, 1);
    ASSERT_TRUE(ranking.has_value());
    EXPECT_EQ(ranking->by_task[0].seconds, score.seconds) << seconds.size() << " runs";
  }
  // Of four runs that reached the target and one that missed only the fastest is dropped.
  const auto ranking = RankSystems(
      {{"a", {ScoreWith("t", {3, 1, 2, 9, 0})}}, {"b", {ScoreWith("t", {7, 7, 7, 7, 0})}}}, 1);
  ASSERT_TRUE(ranking.has_value());
  EXPECT_NEAR(ranking->systems[1].speed->value, (3 + 2 + 9) / 3.0 / 7, 1e-9);
}

TEST(RankSystems, DifferentDataSetsAreNotRanked) {
  const auto on = [](const std::string& data_set) {
    Score score = ScoreWith("t", {10, 11, 12});
    for (RunRecord& run : score.runs) run.data_set = data_set;
    return score;
  };
  const auto wrong = RankSystems({{"a", {on("x")}}, {"b", {on("y")}}}, 1);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(wrong.error().message, "t: a has runs on x, b on y, expected one data set");
  // A system with both uses the same data set.
  const auto both = RankSystems({{"a", {on("x")}}, {"b", {on("y"), on("x")}}}, 1);
  ASSERT_TRUE(both.has_value());
  EXPECT_TRUE(both->notes.empty());
  const auto unknown = RankSystems({{"a", {on("x")}}, {"b", {on("")}}}, 1);
  ASSERT_TRUE(unknown.has_value());
  EXPECT_EQ(unknown->notes,
            std::vector<std::string>{"t: the data set of b is unknown; treated as x"});
}

TEST(RankSystems, OtherWorkIsNotRankedAndOtherSettingsAreNoted) {
  const auto with = [](auto change, const std::string& mode = "quality") {
    Score score = ScoreWith("t", {10, 11, 12});
    for (RunRecord& run : score.runs) {
      run.mode = mode;
      run.batch = 8;
      run.target = 0.9;
      run.precision = "fp32";
      run.settings = NamedTexts();
      run.step_seconds = {1};
      change(run);
    }
    return score;
  };
  const auto same = [](RunRecord&) {};
  const auto batch = [](RunRecord& run) { run.batch = 256; };
  const auto target = [](RunRecord& run) { run.target = 0.5; };
  const auto said = [](const Score& a, const Score& b) {
    const auto ranking = RankSystems({{"a", {a}}, {"b", {b}}}, 1);
    if (ranking.has_value()) return ranking->notes.empty() ? "" : ranking->notes.front();
    EXPECT_EQ(ranking.error().code, ErrorCode::kBadInput);
    return "error: " + ranking.error().message;
  };
  EXPECT_EQ(said(with(same), with(same)), "");
  EXPECT_EQ(said(with(same, "steps"), with(batch, "steps")),
            "error: t: a has runs with batch 8, b with 256, expected one batch");
  EXPECT_EQ(said(with(same), with(target)),
            "error: t: a has runs with target 0.9, b with 0.5, expected one target");
  EXPECT_EQ(said(with(same, "steps"), with(target, "steps")), "");
  EXPECT_EQ(said(with(same), with(same, "steps")),
            "error: t: a has runs with mode quality, b with steps, expected one scale and mode");
  EXPECT_EQ(said(with(same), with(batch)), "t: batch 8 on a, 256 on b");
  EXPECT_EQ(said(with(same), with([](RunRecord& run) { run.precision = "bf16"; })),
            "t: precision fp32 on a, bf16 on b");
  EXPECT_EQ(said(with(same), with([](RunRecord& run) { (*run.settings)["frozen"] = "yes"; })),
            "t: frozen not given on a, yes on b");
  // A system with both uses the one that can be ranked.
  const auto both = RankSystems(
      {{"a", {with(same, "steps")}}, {"b", {with(batch, "steps"), with(same, "steps")}}}, 1);
  ASSERT_TRUE(both.has_value());
  EXPECT_TRUE(both->notes.empty());
}

TEST(RankSystems, WithoutACommonTaskThereIsNone) {
  const auto ranking =
      RankSystems({{"a", {ScoreWith("t", {10})}}, {"b", {ScoreWith("u", {10})}}}, 1);
  ASSERT_FALSE(ranking.has_value());
  EXPECT_EQ(ranking.error().code, ErrorCode::kBadInput);
}

}  // namespace
}  // namespace etude::suite
