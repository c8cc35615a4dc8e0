#include "src/formats/job/capture_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace etude {
namespace {

class CaptureFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Put(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  Result<CaptureFolder> List() {
    RunContext context;
    warnings_.clear();
    context.warn = [this](std::string_view text) { warnings_.emplace_back(text); };
    return ListCaptureFolder(folder_.string(), context);
  }

  static constexpr const char* kHost =
      R"({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": [], "finish_ts": 1})";
  static constexpr const char* kDevice = R"({"schemaVersion": 1, "traceEvents": []})";
  static constexpr const char* kDeviceOfRank4 =
      R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 4}, "traceEvents": []})";

  std::filesystem::path folder_;
  std::vector<std::string> warnings_;
};

TEST_F(CaptureFolderTest, WhatIsNamedLikeATraceAndIsNoneIsDamaged) {
  Put("host.0.json", kHost);
  Put("host.1.json.gz", "no trace");
  Put("capture.2.etude", "");
  Put("notes.json", "no trace, and not of a rank");
  Put("settings.3.json", R"({"is": "JSON of another kind"})");
  const auto folder = List();
  ASSERT_TRUE(folder);
  EXPECT_EQ(folder->ranks.size(), 1U);
  ASSERT_EQ(folder->damaged.size(), 2U);
  EXPECT_TRUE(folder->damaged[0].path.ends_with("capture.2.etude"));
  EXPECT_TRUE(folder->damaged[1].message.ends_with("unknown content, expected a trace"));
}

TEST_F(CaptureFolderTest, ASingleProcessNeedsNoRank) {
  Put("x_et.json", kHost);
  Put("x_kineto.json", kDevice);
  Put("x_meta.json", "{\"threads\": 1}");
  Put("notes.txt", "hello");
  const auto folder = List();
  ASSERT_TRUE(folder) << folder.error().message;
  ASSERT_EQ(folder->ranks.size(), 1u);
  EXPECT_EQ(folder->ranks[0].rank, std::nullopt);
  EXPECT_EQ(folder->ranks[0].files().size(), 2u);
}

TEST_F(CaptureFolderTest, RanksAreToldByNameAndByContent) {
  Put("rank-4.json", kHost);
  Put("rank-10.json", kHost);
  Put("trace-of-some-run.json", kDeviceOfRank4);
  const auto folder = List();
  ASSERT_TRUE(folder) << folder.error().message;
  ASSERT_EQ(folder->ranks.size(), 2u);
  EXPECT_EQ(folder->ranks[0].rank, 4);
  EXPECT_EQ(folder->ranks[0].files().size(), 2u);
  EXPECT_EQ(folder->ranks[1].rank, 10);
}

TEST_F(CaptureFolderTest, LeavesOutWhatHasNoRank) {
  Put("rank-4.json", kHost);
  Put("mystery.json", kHost);
  const auto folder = List();
  ASSERT_TRUE(folder) << folder.error().message;
  ASSERT_EQ(folder->ranks.size(), 1u);
  EXPECT_EQ(folder->ranks[0].rank, 4);
  ASSERT_EQ(folder->left_out.size(), 1u);
  EXPECT_TRUE(folder->left_out[0].ends_with("mystery.json"));
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("skipped mystery.json"), std::string::npos) << warnings_[0];
}

TEST_F(CaptureFolderTest, SeveralTracesWithoutARankAreNoJob) {
  Put("step_100.json", kDevice);
  Put("step_200.json", kDevice);
  const auto folder = List();
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, ErrorCode::kBadInput);
  EXPECT_NE(folder.error().message.find("step_100.json and step_200.json"), std::string::npos);
}

TEST_F(CaptureFolderTest, NumbersThatCountFromZeroAreRanks) {
  for (int rank = 0; rank < 11; ++rank) Put("trace_" + std::to_string(rank) + ".json", kDevice);
  const auto folder = List();
  ASSERT_TRUE(folder) << folder.error().message;
  ASSERT_EQ(folder->ranks.size(), 11u);
  EXPECT_EQ(folder->ranks[10].rank, 10);
  EXPECT_TRUE(folder->ranks[10].device.ends_with("trace_10.json"));
}

TEST_F(CaptureFolderTest, NumbersOfOtherTracesAreThoseOfTheRanks) {
  Put("host.1.json", kHost);
  Put("host.2.json", kHost);
  Put("kineto_2.json", kDevice);
  Put("kineto_7.json", kDevice);
  const auto folder = List();
  ASSERT_TRUE(folder) << folder.error().message;
  ASSERT_EQ(folder->ranks.size(), 2u);
  EXPECT_TRUE(folder->ranks[1].device.ends_with("kineto_2.json"));
  EXPECT_EQ(folder->left_out.size(), 1u);
}

TEST_F(CaptureFolderTest, TakesOneOfTwoTracesOfARank) {
  Put("host.0.json", kHost);
  Put("rank-0.json", kHost);
  const auto folder = List();
  ASSERT_TRUE(folder) << folder.error().message;
  ASSERT_EQ(folder->ranks.size(), 1u);
  EXPECT_TRUE(folder->ranks[0].host.ends_with("host.0.json"));
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("skipped rank-0.json"), std::string::npos) << warnings_[0];
  EXPECT_NE(warnings_[0].find("used host.0.json"), std::string::npos) << warnings_[0];
}

TEST_F(CaptureFolderTest, TakesTheRecordingsOfOneRun) {
  Put("rank0.1773709679453.json", kDevice);
  Put("rank0.1773709699453.json", kDevice);
  Put("rank1.1773709699455.json", kDevice);
  auto folder = List();
  ASSERT_TRUE(folder) << folder.error().message;
  ASSERT_EQ(folder->ranks.size(), 2u);
  EXPECT_TRUE(folder->ranks[0].device.ends_with("rank0.1773709699453.json"));
  Put("rank1.1773709679455.json", kDevice);
  folder = List();
  ASSERT_TRUE(folder) << folder.error().message;
  EXPECT_TRUE(folder->ranks[0].device.ends_with("rank0.1773709679453.json"));
  EXPECT_TRUE(folder->ranks[1].device.ends_with("rank1.1773709679455.json"));
}

TEST_F(CaptureFolderTest, TakesTheJobOfMostRanks) {
  Put("a_rank0.json", kDevice);
  Put("b_rank0.json", kDevice);
  Put("b_rank1.json", kDevice);
  const auto folder = List();
  ASSERT_TRUE(folder) << folder.error().message;
  ASSERT_EQ(folder->ranks.size(), 2u);
  EXPECT_TRUE(folder->ranks[0].device.ends_with("b_rank0.json"));
}

TEST_F(CaptureFolderTest, ContentTellsTheRanksOfSeveralNodes) {
  Put("node0_rank4.json", kDeviceOfRank4);
  Put("node1_rank4.json",
      R"({"schemaVersion": 1, "distributedInfo": {"rank": 12}, "traceEvents": []})");
  const auto folder = List();
  ASSERT_TRUE(folder) << folder.error().message;
  ASSERT_EQ(folder->ranks.size(), 2u);
  EXPECT_EQ(folder->ranks[1].rank, 12);
}

TEST_F(CaptureFolderTest, AProfileOfAllRanksIsNoneOfThem) {
  Put("rank-0.json", kDevice);
  Put("rank-1.json", kDevice);
  Put("merged.json", R"({"schemaVersion": 1, "distributedInfo": {"rank": 0}, "traceEvents": [
    {"ph": "X", "name": "a", "pid": "[TP00] 1", "tid": 1, "ts": 1, "dur": 1}]})");
  const auto folder = List();
  ASSERT_TRUE(folder) << folder.error().message;
  ASSERT_EQ(folder->ranks.size(), 2u);
  ASSERT_EQ(folder->left_out.size(), 1u);
  EXPECT_TRUE(folder->left_out[0].ends_with("merged.json"));
}

TEST_F(CaptureFolderTest, AFolderWithoutTracesIsAnError) {
  Put("notes.txt", "hello");
  const auto folder = List();
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, ErrorCode::kBadInput);
}

TEST_F(CaptureFolderTest, ReadsTheStepTimesOfTheRecordedSignature) {
  Put("host.0.json", kHost);
  Put("job.json", R"({"format": "etude-job", "version": 1, "command": ["python", "t.py"],
    "world_size": 1, "ranks": {"0": {"step_kind": "optimizer", "threads": {"intra_op": 2},
    "signatures": [{"id": "a", "description": "SGD", "seen": 9, "timed": 2, "recorded": true}],
    "timed_steps": [{"signature": "a", "wall_ns": 10, "cpu_ns": 9},
                    {"signature": "b", "wall_ns": 99, "cpu_ns": 98}],
    "recorded_step": {"signature": "a", "wall_ns": 20, "cpu_ns": 19}}}})");
  const auto folder = List();
  ASSERT_TRUE(folder) << folder.error().message;
  const JobRank* rank = folder->job_rank(folder->ranks[0]);
  ASSERT_NE(rank, nullptr);
  EXPECT_EQ(rank->threads, 2);
  ASSERT_EQ(rank->ComparableSteps().size(), 1u);
  EXPECT_EQ(rank->ComparableSteps()[0].cpu, Nanos{9});
}

TEST_F(CaptureFolderTest, LinksOutOfTheFolderAreSaid) {
  std::filesystem::create_directories(folder_ / "capture");
  Put("elsewhere.json", kHost);
  Put("capture/own.data", kHost);
  const std::filesystem::path capture = folder_ / "capture";
  RunContext context;
  std::vector<std::string> warnings;
  context.warn = [&](std::string_view text) { warnings.emplace_back(text); };
  std::filesystem::create_symlink("own.data", capture / "host.0.json");
  ASSERT_TRUE(ListCaptureFolder(capture.string(), context));
  EXPECT_TRUE(warnings.empty()) << warnings.front();
  std::filesystem::create_symlink("../elsewhere.json", capture / "host.1.json");
  ASSERT_TRUE(ListCaptureFolder(capture.string(), context));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(warnings[0].starts_with((capture / "host.1.json").string() + ": symbolic link out"))
      << warnings[0];
}

TEST_F(CaptureFolderTest, ABrokenJobFileIsAnError) {
  Put("host.0.json", kHost);
  for (const char* text : {"{", "[]", R"({"format": "other"})", R"({"format": "etude-job"})",
                           R"({"format": "etude-job", "version": 9, "ranks": {}})",
                           R"({"format": "etude-job", "version": 1, "ranks": {"x": {}}})"}) {
    Put("job.json", text);
    const auto folder = List();
    ASSERT_FALSE(folder) << text;
    EXPECT_EQ(folder.error().code, ErrorCode::kBadInput);
  }
}

}  // namespace
}  // namespace etude
