#include "src/suite/results/characterization.h"

#include <gtest/gtest.h>

#include "src/run/planted_trace.h"

namespace etude::suite {
namespace {

using testing_support::PlantedTrace;

// Two products in a linear layer take 80 us of 100; 15 are the layer's own, 5 are a ReLU.
Trace Step() {
  return PlantedTrace()
      .Label("autograd::engine::evaluate_function: AddmmBackward0", 1, 0, 200)
      .Operator("aten::linear", 1, 0, 95)
      .Operator("aten::mm", 1, 10, 60)
      .Operator("aten::mm", 1, 65, 95)
      .Operator("aten::relu", 1, 100, 105)
      .Read();
}

double ShareOf(const StepWork& work, HotSpot category) {
  return work.shares[static_cast<size_t>(category)];
}

TEST(Characterization, SharesAreOfTheOperatorsOwnTime) {
  const StepWork work = WorkOfStep(Step()).value();
  EXPECT_EQ(work.operators, 4);
  ASSERT_EQ(work.by_share.size(), 3u);
  EXPECT_EQ(work.by_share[0].name, "aten::mm");
  EXPECT_EQ(work.by_share[0].count, 2);
  EXPECT_DOUBLE_EQ(work.by_share[0].share, 0.8);
  EXPECT_DOUBLE_EQ(ShareOf(work, HotSpot::kGemm), 0.95) << "with the layer's own time";
  EXPECT_DOUBLE_EQ(ShareOf(work, HotSpot::kRelu), 0.05);
  EXPECT_EQ(work.Covering(0.5), 1);
  EXPECT_EQ(work.Covering(0.8), 1);
  EXPECT_EQ(work.Covering(0.9), 2);
  EXPECT_EQ(work.Covering(1), 3);
  EXPECT_EQ(work.layers, (std::vector<std::string>{"ReLU", "linear"}));
}

TEST(Characterization, AStepWithoutTimesIsAnError) {
  const Result<StepWork> work = WorkOfStep(PlantedTrace().Read());
  ASSERT_FALSE(work);
  EXPECT_EQ(work.error().code, ErrorCode::kBadInput);
}

Characterization TaskOf(std::vector<double> one_thread, std::vector<double> two_threads) {
  Characterization task;
  task.steps.task = "spatial-transformer";
  task.steps.step_seconds = std::move(one_thread);
  task.steps_of_all = RunRecord{.threads = 2, .step_seconds = std::move(two_threads)};
  return task;
}

TEST(Characterization, EfficiencyIsTheSpeedupByItsThreads) {
  EXPECT_DOUBLE_EQ(*TaskOf({3, 4, 5}, {2.5, 2.5}).efficiency(), 0.8);
  Characterization task = TaskOf({1}, {1});
  task.steps_of_all.reset();
  EXPECT_FALSE(task.efficiency());
}

TEST(Characterization, EpochsAreThoseOfRunsThatReachedTheTarget) {
  Characterization task = TaskOf({1}, {1});
  EXPECT_FALSE(task.epochs_to_target());
  const auto run = [](int64_t steps, bool reached) {
    return RunRecord{.batch = 10, .samples = 100, .reached = reached, .steps = steps};
  };
  task.runs = {run(20, true), run(40, true), run(500, false)};
  EXPECT_DOUBLE_EQ(*task.epochs_to_target(), 3);
}

TEST(Characterization, TheDocumentHasAllFigures) {
  Characterizations all{.scale = "smoke", .peaks = {.flop_per_s = 100, .bytes_per_s = 10}};
  all.tasks.push_back(TaskOf({4}, {2.5}));
  all.tasks.front().work = WorkOfStep(Step()).value();
  const nlohmann::ordered_json json = ToJson(all);
  EXPECT_EQ(json["format"], "etude-suite-characterization");
  const auto& task = json["tasks"][0];
  EXPECT_EQ(task["parallel"]["efficiency"], 0.8);
  EXPECT_EQ(task["hot_spots"]["categories"]["ReLU"], 0.05);
  EXPECT_EQ(task["blocks"][1], "spatial transformer");
  EXPECT_TRUE(task["counters"].is_null());
  // A page and tables for the same figures.
  EXPECT_EQ(CharacterizationTables(all).size(), 5u);
  const Page page = MakeCharacterizationPage(all, "f");
  EXPECT_NE(ToHtml(page).find("Hot spots"), std::string::npos);
  ASSERT_EQ(page.sections[0].charts.size(), 1u);
  const Chart& chart = page.sections[0].charts[0];
  ASSERT_EQ(chart.series.size(), 1u);
  std::vector<std::string> axes;
  for (const Chart::Axis& axis : chart.axes) axes.push_back(axis.title);
  EXPECT_EQ(axes, (std::vector<std::string>{"parameters", "FLOP a sample", "step",
                                            "parallel efficiency", "operators that take 90 %"}));
  EXPECT_EQ(chart.series[0].values[2], Cell(int64_t{4'000'000'000}));
}

}  // namespace
}  // namespace etude::suite
