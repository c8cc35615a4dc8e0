#include "src/suite/results/task_benchmarks.h"

#include <gtest/gtest.h>

namespace etude::suite {
namespace {

// Twelve pairs in which the benchmark takes 1 % more CPU time, and 20 % more memory.
TaskBenchmark Made() {
  TaskBenchmark made{.task = "t", .certificate = "out/certificates/t.json"};
  RunComparison& run = made.fidelity.run;
  for (size_t i = 0; i < 12; ++i) {
    StepPair& pair = run.pairs.emplace_back();
    pair.original[StepMetric::kCpuTime] = 100e6;
    pair.replay[StepMetric::kCpuTime] = 101e6;
    pair.original[StepMetric::kPeakMemory] = 1000;
    pair.replay[StepMetric::kPeakMemory] = 1200;
  }
  run.replay.operators = run.replay.operators_replayed = 40;
  run.replay.time_coverage = 1;
  JudgeRun(run, DefaultBars(), {});
  return made;
}

TEST(TaskBenchmarks, TableOfCoverageAndErrors) {
  const Table table = FidelityTable({Made()});
  ASSERT_EQ(table.rows.size(), 1U);
  const std::vector<Cell> cells = {"t",
                                   int64_t{40},
                                   1.0,
                                   1.0,
                                   Cell(),
                                   Cell(),
                                   "+1.0 % [+1.0 %, +1.0 %]",
                                   "+20.0 % [+20.0 %, +20.0 %]",
                                   "1 of 2 met, 1 missed"};
  EXPECT_EQ(table.rows[0], cells);
  TaskBenchmark made = Made();
  for (StepPair& pair : made.fidelity.run.pairs) {
    pair.original[StepMetric::kWallTime] = pair.replay[StepMetric::kWallTime] = 90e6;
  }
  JudgeRun(made.fidelity.run, DefaultBars(), {});
  EXPECT_EQ(FidelityTable({made}).rows[0][4], Cell(int64_t{90'000'000}));
}

TEST(TaskBenchmarks, UnknownCoverageIsNotMet) {
  TaskBenchmark made = Made();
  EXPECT_FALSE(made.met());
  JudgeRun(made.fidelity.run, {0.05}, {});
  EXPECT_TRUE(made.met());
  made.fidelity.run.replay.operators_replayed = 39;
  EXPECT_FALSE(made.met());
  EXPECT_EQ(ToJson(made)["coverage"]["ops"], 39.0 / 40);
  made.fidelity.run.replay = {};
  EXPECT_FALSE(made.met());
  EXPECT_TRUE(ToJson(made)["coverage"]["ops"].is_null());
  EXPECT_EQ(FidelityTable({made}).rows[0][1], Cell());
}

}  // namespace
}  // namespace etude::suite
