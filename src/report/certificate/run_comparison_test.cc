#include "src/report/certificate/run_comparison.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "src/report/certificate/run_comparison_json.h"

namespace etude {
namespace {

using enum StepMetric;

constexpr std::array<std::string, kStepMetricCount> NoReasons() { return {}; }

// Makes `count` pairs with the same figures on each side.
RunComparison RunOf(int count, double original_cpu, double replay_cpu) {
  RunComparison run{.rank = 3, .pairs_wanted = 30};
  for (int i = 0; i < count; ++i) {
    StepPair pair{.original_first = i % 2 == 0};
    pair.original[kCpuTime] = original_cpu;
    pair.replay[kCpuTime] = replay_cpu;
    pair.original[kPageFaults] = 0;
    pair.replay[kPageFaults] = 7;
    pair.original[kPeakMemory] = 1 << 20;
    run.pairs.push_back(pair);
  }
  return run;
}

const MetricComparison& Of(const RunComparison& run, StepMetric metric) {
  return run.metrics.at(static_cast<size_t>(metric));
}

TEST(RunComparison, MetricsHaveNamesOfTheirOwnInTheirOrder) {
  size_t index = 0;
  for (const StepMetricInfo& info : StepMetrics()) {
    EXPECT_EQ(static_cast<size_t>(info.metric), index++);
    for (const StepMetricInfo& other : StepMetrics()) {
      EXPECT_EQ(info.name == other.name, info.metric == other.metric);
    }
  }
}

TEST(RunComparison, HowManyPairsWouldDecide) {
  // Errors alternate between 0 and 8 %: the median is between, its interval crosses the bar of 5 %.
  RunComparison run;
  for (int i = 0; i < 20; ++i) {
    StepPair pair;
    pair.original[kCpuTime] = 100e6;
    pair.replay[kCpuTime] = i % 2 == 0 ? 100e6 : 108e6;
    run.pairs.push_back(pair);
  }
  run.seconds = 40;
  JudgeRun(run, DefaultBars(), NoReasons());
  EXPECT_EQ(Of(run, kCpuTime).verdict, BarVerdict::kUndetermined);
  ASSERT_TRUE(Of(run, kCpuTime).pairs_to_decide.has_value());
  EXPECT_GT(*Of(run, kCpuTime).pairs_to_decide, 20);
  const std::string text = RunComparisonText(run);
  EXPECT_NE(text.find("pairs needed for a verdict: CPU time about "), std::string::npos) << text;
  EXPECT_NE(text.find("--until decided"), std::string::npos);
  // A decided verdict needs no more pairs. For few pairs the minimum that decides is reported.
  RunComparison met = RunOf(20, 100e6, 101e6);
  JudgeRun(met, DefaultBars(), NoReasons());
  EXPECT_FALSE(Of(met, kCpuTime).pairs_to_decide.has_value());
  RunComparison few = RunOf(3, 100e6, 101e6);
  JudgeRun(few, DefaultBars(), NoReasons());
  EXPECT_EQ(Of(few, kCpuTime).pairs_to_decide, static_cast<int64_t>(kLeastPairs));
}

TEST(RunComparison, JudgesWhatBothSidesHave) {
  RunComparison run = RunOf(20, 100e6, 103e6);
  std::array<std::string, kStepMetricCount> reasons;
  reasons[static_cast<size_t>(kPeakMemory)] = "not told";
  JudgeRun(run, DefaultBars(), reasons);
  EXPECT_EQ(Of(run, kCpuTime).verdict, BarVerdict::kMet);
  EXPECT_EQ(Of(run, kPageFaults).verdict, BarVerdict::kMissed);
  // Available for the original only.
  EXPECT_FALSE(Of(run, kPeakMemory).figures);
  EXPECT_FALSE(Of(run, kPeakMemory).verdict);
  EXPECT_EQ(Of(run, kPeakMemory).reason, "not told");
  EXPECT_FALSE(run.all_met());
}

TEST(RunComparison, WithoutABarThereIsNoVerdict) {
  RunComparison run = RunOf(20, 100e6, 103e6);
  StepBars bars = DefaultBars();
  bars[static_cast<size_t>(kPageFaults)].reset();
  JudgeRun(run, bars, NoReasons());
  EXPECT_FALSE(Of(run, kPageFaults).verdict);
  EXPECT_TRUE(Of(run, kPageFaults).figures);
  EXPECT_TRUE(run.all_met());
  bars[static_cast<size_t>(kCpuTime)] = 0.02;
  JudgeRun(run, bars, NoReasons());
  EXPECT_EQ(Of(run, kCpuTime).verdict, BarVerdict::kMissed);
}

TEST(RunComparison, WithoutPairsEveryBarIsUndetermined) {
  RunComparison run;
  JudgeRun(run, DefaultBars(), NoReasons());
  EXPECT_EQ(Of(run, kWallTime).verdict, BarVerdict::kUndetermined);
  EXPECT_FALSE(run.all_met());
  EXPECT_NE(RunComparisonText(run).find("NOT all bars are met: CPU time undetermined"),
            std::string::npos);
}

TEST(RunComparison, TooFewPairsAreSaidToBe) {
  RunComparison run = RunOf(3, 100e6, 103e6);
  JudgeRun(run, DefaultBars(), NoReasons());
  EXPECT_EQ(Of(run, kCpuTime).verdict, BarVerdict::kUndetermined);
  const std::string said = "undetermined with 3 pairs: a verdict requires at least 10 (--pairs)\n";
  EXPECT_NE(RunComparisonText(run).find(said), std::string::npos) << RunComparisonText(run);
  RunComparison enough = RunOf(10, 100e6, 103e6);
  JudgeRun(enough, DefaultBars(), NoReasons());
  EXPECT_EQ(RunComparisonText(enough).find("a verdict requires"), std::string::npos);
}

TEST(RunComparison, IsReadBackAsItWasWritten) {
  RunComparison run = RunOf(12, 100e6, 103e6);
  JudgeRun(run, DefaultBars(), NoReasons());
  const std::string path = testing::TempDir() + "etude_run_comparison.json";
  run.replay = {.torch = "2.9",
                .operators = 5,
                .operators_replayed = 4,
                .same_kernels = 0.75,
                .skipped = {{.op = "my::op", .reason = "no kernel", .count = 1}},
                .kinds = {{.step = 2, .steps = 3, .time_share = 0.5, .replayed = true}}};
  run.machine = {.cpu = "a processor", .cores = 8, .gpus = {{.name = "a GPU"}}};
  run.versions = {{"torch", "2.9"}};
  std::ofstream(path) << ToJson(run);
  const auto read = ReadRunComparison(path, {});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->rank, 3);
  ASSERT_EQ(read->metrics.size(), run.metrics.size());
  const MetricComparison& cpu = Of(*read, kCpuTime);
  EXPECT_DOUBLE_EQ(cpu.figures->original->value, 100e6);
  EXPECT_DOUBLE_EQ(cpu.figures->error->high, Of(run, kCpuTime).figures->error->high);
  EXPECT_EQ(cpu.bar, 0.05);
  EXPECT_EQ(cpu.verdict, BarVerdict::kMet);
  EXPECT_TRUE(std::isinf(Of(*read, kPageFaults).figures->error->value));
  EXPECT_FALSE(Of(*read, kPeakMemory).figures);
  // Nothing is lost, and the judged figures match the measured ones.
  EXPECT_EQ(ToJson(*read), ToJson(run));
  EXPECT_TRUE(CheckFigures("run", *read));
  std::filesystem::remove(path);
}

TEST(RunComparison, FiguresThatAreNotThoseOfThePairsAreFound) {
  RunComparison run = RunOf(12, 100e6, 108e6);
  JudgeRun(run, DefaultBars(), NoReasons());
  ASSERT_TRUE(CheckFigures("run", run));
  RunComparison better = run;
  better.metrics[0].verdict = BarVerdict::kMet;
  const Status found = CheckFigures("run", better);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message,
            "run: metric cpu_time: found figures that do not match its pairs");
  better = run;
  better.metrics[0].figures->error->value = 0.01;
  EXPECT_FALSE(CheckFigures("run", better));
  better = run;
  better.pairs.pop_back();
  EXPECT_FALSE(CheckFigures("run", better));
}

TEST(RunComparison, TableHasTheUnitsOfAPage) {
  RunComparison run = RunOf(12, 100e6, 103e6);
  JudgeRun(run, DefaultBars(), NoReasons());
  const Table table = RunComparisonTable({run});
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(std::get<std::string>(table.rows[0][2]), "ms");
  EXPECT_DOUBLE_EQ(std::get<double>(table.rows[0][3]), 100);
  EXPECT_EQ(std::get<std::string>(table.rows[0][13]), "met");
  // The original has no page faults, so no error is defined.
  EXPECT_TRUE(std::holds_alternative<std::monostate>(table.rows[1][9]));
}

}  // namespace
}  // namespace etude
