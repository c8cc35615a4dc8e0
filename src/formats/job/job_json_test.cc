#include "src/formats/job/job_json.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "src/formats/io/atomic_file.h"

namespace etude {
namespace {

class JobJsonTest : public testing::Test {
 protected:
  JobJsonTest()
      : path_(testing::TempDir() + "/" +
              testing::UnitTest::GetInstance()->current_test_info()->name() + ".job.json") {}
  ~JobJsonTest() override { std::filesystem::remove(path_); }

  Result<JobFile> Read(const std::string& job, const std::string& rank) {
    const std::string text =
        R"({"format": "etude-job", "version": 1, )" + job + R"("ranks": {"0": {)" + rank + "}}}";
    if (const Status written = WriteFile(path_, text); !written) {
      return tl::unexpected<Error>(written.error());
    }
    return ReadJobFile(path_, RunContext());
  }
  // Returns the message after the path of the file.
  std::string Complaint(const std::string& job, const std::string& rank) {
    const Result<JobFile> file = Read(job, rank);
    if (file) return "none";
    EXPECT_EQ(file.error().code, ErrorCode::kBadInput);
    return file.error().message.substr(path_.size() + 2);
  }

  std::string path_;
};

TEST_F(JobJsonTest, ReadsWhatIsThere) {
  const auto job = Read(R"("command": ["a", "b"], "world_size": 2, )",
                        R"("native": "capture.0.etude", "threads": {"intra_op": 8},
                           "heap": {"mmap_threshold": 131072}, "notes": ["n"],
                           "memory": {"before_steps_bytes": 100, "peak_bytes": 130},
                           "signatures": [{"id": "a", "seen": 3, "timed": 2, "recorded": true}],
                           "timed_steps": [{"wall_ns": 5, "cpu_ns": 4, "minor_faults": 0}],
                           "recorded_step": {"wall_ns": 9, "cpu_ns": 8, "steps": 2})");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->command, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(job->world_size, 2);
  const JobRank& rank = job->ranks.at(0);
  EXPECT_EQ(rank.threads, 8);
  EXPECT_EQ(rank.mmap_threshold, 131072);
  EXPECT_EQ(rank.memory_growth, Bytes{30});
  EXPECT_EQ(rank.recorded_signature, "a");
  EXPECT_EQ(rank.signatures[0].seen, 3u);
  EXPECT_EQ(rank.timed_steps[0].minor_faults, 0);
  EXPECT_EQ(rank.recorded->wall, Nanos{9});
  EXPECT_EQ(rank.notes, std::vector<std::string>{"n"});
}

// The host runs ahead of a device and waits later: its step times are not those of the program.
TEST_F(JobJsonTest, StepsOnADeviceTakeAsLongAsTheDevice) {
  const auto job = Read("", R"("timed_steps": [{"wall_ns": 5, "cpu_ns": 4, "device_ns": 7},
                                               {"wall_ns": 6, "cpu_ns": 4}])");
  ASSERT_TRUE(job) << job.error().message;
  const std::vector<StepTime>& steps = job->ranks.at(0).timed_steps;
  EXPECT_EQ(steps[0].wall, Nanos{7});
  EXPECT_EQ(steps[0].host, Nanos{5});
  EXPECT_EQ(steps[1].wall, Nanos{6});
  EXPECT_EQ(steps[1].host, std::nullopt);
}

TEST_F(JobJsonTest, WhatIsAbsentOrNullIsUnknown) {
  const auto job = Read(R"("world_size": null, )", R"("threads": null, "recorded_step": null)");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->world_size, std::nullopt);
  EXPECT_EQ(job->ranks.at(0).threads, std::nullopt);
  EXPECT_FALSE(job->ranks.at(0).recorded);
}

// These must not be treated as missing or accepted unchanged.
TEST_F(JobJsonTest, WrongTypesAndRangesAreErrorsWithTheirPlace) {
  EXPECT_EQ(Complaint(R"("world_size": "two", )", ""),
            "job.world_size: found \"two\", expected a whole number >= 1");
  EXPECT_EQ(Complaint(R"("command": "text", )", ""),
            "job.command: found \"text\", expected a list");
  EXPECT_EQ(Complaint(R"("command": [1], )", ""), "job.command: found 1, expected a list of texts");
  EXPECT_EQ(Complaint("", R"("native": 7)"), "ranks.0.native: found 7, expected a text");
  EXPECT_EQ(Complaint("", R"("threads": {"intra_op": -1})"),
            "ranks.0.threads.intra_op: found -1, expected a whole number, 1 to 65536");
  EXPECT_EQ(Complaint("", R"("threads": {"intra_op": 1000000000})"),
            "ranks.0.threads.intra_op: found 1000000000, expected a whole number, 1 to 65536");
  EXPECT_EQ(Complaint("", R"("heap": {"mmap_threshold": -1})"),
            "ranks.0.heap.mmap_threshold: found -1, expected a whole number >= 0");
  EXPECT_EQ(Complaint("", R"("recorded_step": {"wall_ns": 1, "cpu_ns": 1, "steps": -1})"),
            "ranks.0.recorded_step.steps: found -1, expected a whole number >= 1");
  EXPECT_EQ(Complaint("", R"("timed_steps": [{"wall_ns": 1, "cpu_ns": 1, "minor_faults": -5}])"),
            "ranks.0.timed_steps.minor_faults: found -5, expected a whole number >= 0");
  EXPECT_EQ(Complaint("", R"("timed_steps": [{"wall_ns": 18446744073709551615, "cpu_ns": 1}])"),
            "ranks.0.timed_steps.wall_ns: found 18446744073709551615, expected a whole number "
            ">= 0");
  EXPECT_EQ(Complaint("", R"("timed_steps": 5)"), "ranks.0.timed_steps: found 5, expected a list");
  EXPECT_EQ(Complaint("", R"("signatures": [3])"),
            "ranks.0.signatures: found 3, expected an object");
}

}  // namespace
}  // namespace etude
