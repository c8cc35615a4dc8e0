#include "src/cli/app/launcher.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace etude {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

Result<std::optional<Launch>> Find(const Variables& variables) {
  return FindLaunch([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string ErrorOf(const Variables& variables) {
  const auto found = Find(variables);
  return found ? "none" : found.error().message;
}

const Variables kTorchrun = {{"RANK", "3"},           {"WORLD_SIZE", "4"},
                             {"LOCAL_RANK", "1"},     {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "gpu1"}, {"MASTER_PORT", "4321"}};
const Variables kSlurm = {{"SLURM_PROCID", "1"},
                          {"SLURM_STEP_NUM_TASKS", "8"},
                          {"SLURM_STEP_NUM_NODES", "2"},
                          {"SLURM_STEP_NODELIST", "gpu[03-04]"},
                          {"SLURM_JOB_ID", "77"}};

TEST(Launcher, NoneAndAWorldOfOneAreNoLaunch) {
  EXPECT_FALSE(Find({}).value());
  EXPECT_FALSE(Find({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).value());
  // A Slurm batch script sees the number of tasks, but is not one of them.
  EXPECT_FALSE(Find({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).value());
}

TEST(Launcher, ReadsTorchrun) {
  const Launch launch = Find(kTorchrun).value().value();
  EXPECT_EQ(launch.launcher, "torchrun");
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.size, 4);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_FALSE(launch.one_machine);
  EXPECT_EQ(launch.host, "gpu1");
  EXPECT_EQ(launch.port, 4321);
  EXPECT_FALSE(launch.store_is_there);

  Variables agent = kTorchrun;
  agent["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  agent["TORCHELASTIC_RESTART_COUNT"] = "2";
  agent["LOCAL_WORLD_SIZE"] = "4";
  const Launch restarted = Find(agent).value().value();
  EXPECT_TRUE(restarted.store_is_there);
  EXPECT_TRUE(restarted.one_machine);
  EXPECT_EQ(restarted.run, "2");
}

TEST(Launcher, ReadsMpi) {
  const Variables open_mpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                              {"OMPI_COMM_WORLD_SIZE", "2"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  const Launch launch = Find(open_mpi).value().value();
  EXPECT_EQ(launch.launcher, "Open MPI");
  EXPECT_EQ(launch.rank, 1);
  EXPECT_TRUE(launch.one_machine);
  EXPECT_EQ(launch.host, "127.0.0.1");
  EXPECT_EQ(launch.port, 29500);
  // mpirun inside of a job of Slurm.
  Variables both = kSlurm;
  both.insert(open_mpi.begin(), open_mpi.end());
  EXPECT_EQ(Find(both).value().value().launcher, "Open MPI");

  const Variables hydra = {{"PMI_RANK", "0"}, {"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "2"}};
  EXPECT_EQ(ErrorOf(hydra),
            "started by MPI on several machines: set MASTER_ADDR in every process to the host name "
            "of rank 0");
}

TEST(Launcher, ReadsSlurm) {
  const Launch launch = Find(kSlurm).value().value();
  EXPECT_EQ(launch.launcher, "Slurm");
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.size, 8);
  EXPECT_EQ(launch.host, "gpu03");
  EXPECT_FALSE(launch.one_machine);
  Variables other = kSlurm;
  other["SLURM_STEP_ID"] = "1";
  EXPECT_NE(Find(other).value().value().port, launch.port);
  EXPECT_GE(launch.port, 15'000);
  other["MASTER_PORT"] = "1234";
  EXPECT_EQ(Find(other).value().value().port, 1234);
}

TEST(Launcher, WrongVariablesAreErrors) {
  Variables wrong = kTorchrun;
  wrong["RANK"] = "4";
  EXPECT_EQ(ErrorOf(wrong), "environment variable RANK: found '4', expected a number from 0 to 3");
  wrong = kTorchrun;
  wrong["MASTER_PORT"] = "http";
  EXPECT_EQ(ErrorOf(wrong),
            "environment variable MASTER_PORT: found 'http', expected a number from 1 to 65535");
}

TEST(Launcher, FirstHostOfAList) {
  EXPECT_EQ(FirstHost("gpu1"), "gpu1");
  EXPECT_EQ(FirstHost("gpu1,gpu2"), "gpu1");
  EXPECT_EQ(FirstHost("gpu[03-07,9],cpu1"), "gpu03");
  EXPECT_EQ(FirstHost("gpu[9,11]"), "gpu9");
  EXPECT_EQ(FirstHost("rack1-gpu[2-3]-ib,x"), "rack1-gpu2-ib");
  EXPECT_EQ(FirstHost(""), "");
}

}  // namespace
}  // namespace etude
