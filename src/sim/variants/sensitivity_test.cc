#include "src/sim/variants/sensitivity.h"

#include <gtest/gtest.h>

#include <map>

#include "src/sim/testing/sim_testing.h"

namespace etude {
namespace {

using testing_sim::CollectiveNode;
using testing_sim::MachineOf;
using testing_sim::ProgramOf;
using testing_sim::RankOf;

// A computation of 1 ms, then an all-reduce of 2 · 7 messages of 1 MiB / 8 over links of 1 GiB/s:
// 14 · (122,070 + 500,000) ns, of which latencies are 7 ms.
TEST(Sensitivity, OfWhatIsOnTheCriticalPath) {
  SimMachine machine =
      MachineOf({{.npus = 8, .bandwidth = 1, .latency = 500'000}}, CollectiveAlgorithm::kRing);
  machine.system.splits = 1;
  const SimNode compute{.kind = NodeKind::kCompute, .duration = 1'000'000};
  const SimWorkload workload{
      .ranks = std::vector<SimRank>(
          8, RankOf(ProgramOf({compute, CollectiveNode(CollectiveType::kAllReduce, 1 << 20)},
                              {{}, {0}})))};
  const int64_t step = Simulate(machine, workload).value().OfRank(0).end;
  std::map<std::string, double> gains;
  const std::vector<Sensitivity> found = SensitivitiesOf(machine, workload, {}).value();
  for (const Sensitivity& one : found) {
    gains[one.key] = static_cast<double>(step - one.time);
  }
  EXPECT_EQ(gains.size(), 3u);
  EXPECT_NEAR(gains["compute"], 1e6 * (1 - 1 / 1.01), 2);
  EXPECT_NEAR(gains["latency_0"], 7e6 * (1 - 1 / 1.01), 20);
  EXPECT_NEAR(gains["bandwidth_0"], 14 * 122'070 * (1 - 1 / 1.01), 20);
}

}  // namespace
}  // namespace etude
