#include "src/sim/result/sharing.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "src/sim/machine/graph_machine.h"
#include "src/sim/network/network_files.h"
#include "src/sim/testing/sim_testing.h"

namespace etude {
namespace {

using testing_sim::CollectiveNode;
using testing_sim::ProgramOf;
using testing_sim::RankOf;

const std::vector<std::string> kTwoNames = {"first", "second"};

// NPUs 0 and 1 on one side, 2 and 3 on the other of a link of 10 bytes per ns.
SimMachine MachineWithOneLink() {
  SimMachine machine;
  auto graph = ParseNetworkGraph(
      "0 a 1000GB/s 0ns\n1 a 1000GB/s 0ns\na b 10GB/s 5ns\nb 2 1000GB/s 0ns\nb 3 1000GB/s 0ns\n",
      "network");
  EXPECT_TRUE(graph) << graph.error().message;
  EXPECT_TRUE(UseGraph(*std::move(graph), {}, "network", machine));
  return machine;
}

// Rank 0 computes and then sends a message to rank 1.
SimWorkload SendingJob(int64_t compute, int64_t bytes) {
  SimWorkload job;
  job.ranks.push_back(RankOf(ProgramOf({{.kind = NodeKind::kCompute, .duration = compute},
                                        {.kind = NodeKind::kSend, .peer = 0, .bytes = bytes}},
                                       {{}, {0}}),
                             {}, {1}));
  job.ranks.push_back(
      RankOf(ProgramOf({{.kind = NodeKind::kRecv, .peer = 0, .bytes = bytes}}, {{}}), {}, {0}));
  return job;
}

TEST(Sharing, MessagesOnOneLinkTakeTwiceAsLong) {
  const SimWorkload job = SendingJob(20, 1000);
  const auto study = StudySharing(
      MachineWithOneLink(),
      {{.workload = &job, .npus = {0, 2}}, {.workload = &job, .npus = {1, 3}}}, kTwoNames, {});
  ASSERT_TRUE(study) << study.error().message;
  for (const SharingJob& each : study->jobs) {
    EXPECT_EQ(each.steps, 1);
    EXPECT_EQ(each.alone, 20 + 5 + 100);
    EXPECT_EQ(each.shared, 20 + 5 + 200);
  }
}

TEST(Sharing, AShortJobRepeatsItsStepWhileALongOneRuns) {
  // Alone 225 and 65 ns: four steps of the second one. Its messages of 40 ns share the link with
  // the first job's of 200, which lasts longer than all of them together: each takes 80.
  const SimWorkload long_job = SendingJob(20, 2000);
  const SimWorkload short_job = SendingJob(20, 400);
  const auto study = StudySharing(
      MachineWithOneLink(),
      {{.workload = &long_job, .npus = {0, 2}}, {.workload = &short_job, .npus = {1, 3}}},
      kTwoNames, {});
  ASSERT_TRUE(study) << study.error().message;
  EXPECT_EQ(study->jobs[0].steps, 1);
  EXPECT_EQ(study->jobs[0].alone, 225);
  EXPECT_EQ(study->jobs[1].steps, 4);
  EXPECT_EQ(study->jobs[1].alone, 65);
  // Until 25 + 80 both share; then the short job computes and its message travels for 25, and so
  // on: shared times 80 and times alone 25 for the long message, of which 80 / 2 + 25 = 65 are sent
  // in 105. After three rounds it has 5 left, sent in 10 of the fourth message.
  EXPECT_EQ(study->jobs[0].shared, 25 + 3 * 105 + 10);
  // The fourth message is alone after these 10, of which it has used a half: 35 more.
  EXPECT_EQ(study->jobs[1].shared, (25 + 3 * 105 + 10 + 35) / 4);
}

TEST(Sharing, OtherNpusDoNotDisturb) {
  SimWorkload job;
  for (int rank = 0; rank < 2; ++rank) {
    job.ranks.push_back(
        RankOf(ProgramOf({CollectiveNode(CollectiveType::kAllReduce, 2000)}, {{}})));
  }
  SimMachine machine = MachineWithOneLink();
  machine.system.algorithms[CollectiveType::kAllReduce].resize(machine.dims.size());
  const auto study = StudySharing(
      machine, {{.workload = &job, .npus = {0, 1}}, {.workload = &job, .npus = {2, 3}}}, kTwoNames,
      {});
  ASSERT_TRUE(study) << study.error().message;
  EXPECT_GT(study->jobs[0].alone, 0);
  EXPECT_EQ(study->jobs[0].alone, study->jobs[0].shared);
  EXPECT_EQ(study->jobs[1].alone, study->jobs[0].alone);
}

TEST(Sharing, AJobThatWaitsForeverIsNamed) {
  SimWorkload stuck = SendingJob(20, 1000);
  stuck.ranks[0] = RankOf(ProgramOf({{.kind = NodeKind::kCompute, .duration = 1}}, {{}}), {}, {1});
  const SimWorkload job = SendingJob(20, 1000);
  const auto study = StudySharing(
      MachineWithOneLink(),
      {{.workload = &job, .npus = {0, 2}}, {.workload = &stuck, .npus = {1, 3}}}, kTwoNames, {});
  ASSERT_FALSE(study);
  EXPECT_NE(study.error().message.find("second: found ranks that wait forever"), std::string::npos)
      << study.error().message;
}

}  // namespace
}  // namespace etude
