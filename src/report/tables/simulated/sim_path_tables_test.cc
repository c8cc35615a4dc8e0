#include "src/report/tables/simulated/sim_path_tables.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "src/analysis/compare/trace_diff.h"
#include "src/analysis/time/breakdown.h"
#include "src/sim/program/workload.h"
#include "src/sim/result/simulated_job.h"
#include "src/sim/testing/sim_testing.h"
#include "src/trace/job/test_job.h"

namespace etude {
namespace {

struct SimulatedStages {
  Job job = testing_job::TwoStages();
  SimWorkload workload = WorkloadOfJob(job).value();
  SimMachine machine = testing_sim::MachineOf({{.npus = 4, .bandwidth = 50, .latency = 500}},
                                              CollectiveAlgorithm::kRing);
  SimResult result = Simulate(machine, workload).value();
};

int64_t SumOfColumn(const Table& table, const std::string& key) {
  int64_t sum = 0;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].key != key) continue;
    for (const std::vector<Cell>& row : table.rows) sum += std::get<int64_t>(row[i]);
  }
  return sum;
}

TEST(SimPathTables, AllAddUpToTheStep) {
  const SimulatedStages stages;
  const SimPath path = FindSimPath(stages.machine, stages.workload, stages.result);
  ASSERT_GT(path.length, 1000);
  const std::vector<Table> tables = SimPathTables(
      path, stages.workload, [](int64_t, uint32_t node) { return std::to_string(node); });
  ASSERT_EQ(tables.size(), kSimPathTables.size());
  for (size_t i = 0; i < tables.size(); ++i) {
    EXPECT_EQ(tables[i].key, kSimPathTables[i]);
    EXPECT_EQ(SumOfColumn(tables[i], "time_ns"), path.length);
    for (const std::vector<Cell>& row : tables[i].rows) {
      EXPECT_EQ(row.size(), tables[i].columns.size());
    }
  }
}

TEST(SimPathTables, LayersOfOneNameAreOneRow) {
  SimPath path{.length = 30};
  for (const int64_t begin : {0, 10, 20}) {
    path.stretches.push_back(
        {.part = SimPart::kCompute, .node = 0, .begin = begin, .end = begin + 10});
  }
  const SimWorkload workload{.ranks = {testing_sim::RankOf(testing_sim::ProgramOf({{}}, {{}}))}};
  size_t named = 0;
  const std::vector<std::string> names = {"layer 11 conv2d #0", "layer 2 conv2d #31", "layer 3"};
  const std::vector<Table> tables =
      SimPathTables(path, workload, [&](int64_t, uint32_t) { return names[named++]; });
  const Table& by_name = tables[2];
  ASSERT_EQ(by_name.rows.size(), 2u);
  EXPECT_EQ(by_name.rows[0][0], Cell("layer * conv2d #*"));
  EXPECT_EQ(by_name.rows[0][2], Cell(int64_t{20}));
  EXPECT_EQ(by_name.rows[1][0], Cell("layer *"));
}

// The breakdown of a simulated trace matches the simulation.
TEST(SimPathTables, TracesSayWhatTheSimulationDid) {
  const SimulatedStages stages;
  const Job made = SimulatedJob(stages.job, stages.workload, stages.result).value();
  for (int64_t rank = 0; rank < 4; ++rank) {
    const Trace trace = TraceOfRank(made, rank).value();
    const std::optional<TimeShares> whole = BreakDown(trace).whole;
    const SimRankResult& times = stages.result.OfRank(rank);
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->window.count, times.wall);
    EXPECT_EQ(whole->compute.count, times.device);
    EXPECT_EQ(whole->communication.count, times.comm);
    // The job without times has the same nodes.
    const Trace recorded = TraceOfRank(stages.job, rank).value();
    const TraceDiff diff = DiffTraces(recorded, trace);
    EXPECT_EQ(diff.same, trace.node_count());
    EXPECT_EQ(diff.removed + diff.added, 0u);
  }
}

}  // namespace
}  // namespace etude
