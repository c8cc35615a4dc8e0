#include "src/jobs/sweep/sweep.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "src/jobs/generate/generate_job.h"
#include "src/jobs/machine_options.h"
#include "src/jobs/sim_job.h"
#include "src/jobs/simulated_step.h"

namespace etude {
namespace {

std::string NewFolder(const std::string& name) {
  const std::string folder = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

constexpr std::string_view kSpec = R"([base]
network = "Ring(2):50GB/s,500ns"
generate = { what = "microbench", model = "all_reduce", ranks = 2 }
[grid]
generate.size = ["1MiB", "2MiB"]
)";

SweepRequest RequestIn(const std::string& folder) {
  std::ofstream(folder + "/sweep.toml") << kSpec;
  return {.spec = folder + "/sweep.toml", .folder = folder + "/out", .threads = 1};
}

TEST(Sweep, RunSweepTakesAsLongAsTheSameJobSimulated) {
  const std::string folder = NewFolder("run_sweep");
  const auto swept = RunSweep(RequestIn(folder), {});
  ASSERT_TRUE(swept) << swept.error().message;
  ASSERT_EQ(swept->rows.size(), 2u);
  ASSERT_TRUE(swept->rows[1].is_done());

  const auto job = GenerateJob({.what = "microbench",
                                .model = "all_reduce",
                                .output = folder + "/bench",
                                .ranks = 2,
                                .size = "2MiB"},
                               {});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->files.size(), 2u);
  const MachineOptions options{.network = "Ring(2):50GB/s,500ns"};
  auto machine = ReadMachine(options, /*ranks=*/0, /*strict=*/false, {});
  ASSERT_TRUE(machine) << machine.error().message;
  auto read = ReadSimJob({.paths = {folder + "/bench"}}, machine->npus(), /*strict=*/false, {});
  ASSERT_TRUE(read) << read.error().message;
  const auto step = SimulateStep(options, *std::move(machine), *std::move(read), /*strict=*/false,
                                 /*files_again=*/false, {});
  ASSERT_TRUE(step) << step.error().message;
  EXPECT_EQ(step->account.step, swept->rows[1].outcome->times->step);
}

TEST(Sweep, GoesOnWhereItWasStopped) {
  const std::string folder = NewFolder("stopped_sweep");
  std::atomic<bool> stop = true;
  RunContext context;
  context.stop = &stop;
  const auto stopped = RunSweep(RequestIn(folder), context);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kInterrupted);
  stop = false;
  EXPECT_TRUE(RunSweep(RequestIn(folder), context));
  Sweep again(RequestIn(folder));
  ASSERT_TRUE(again.Prepare({}));
  const auto counts = again.Simulate({});
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->simulated + counts->refused, 0u);
}

TEST(Sweep, RefusesARunWithoutAFolderAndAWrongRequest) {
  EXPECT_EQ(RunSweep({.spec = "sweep.toml"}, {}).error().code, ErrorCode::kUsage);
  const auto job = GenerateJob(
      {.what = "llm", .model = "llama-3-8b", .output = "x", .options = {.layers = -1}}, {});
  EXPECT_EQ(job.error().message, "--layers: found '-1', expected 1 to 16777216");
}

}  // namespace
}  // namespace etude
