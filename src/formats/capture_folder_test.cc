#include "src/formats/capture_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace etude {
namespace {

TEST(RankFromName, KnowsTheNamesThatToolsWrite) {
  EXPECT_EQ(RankFromName("host.3.json.gz"), 3);
  EXPECT_EQ(RankFromName("kineto_00000012.json"), 12);
  EXPECT_EQ(RankFromName("kineto_00000000.json"), 0);
  EXPECT_EQ(RankFromName("device.12.json"), 12);
  EXPECT_EQ(RankFromName("chakra.0.et.zst"), 0);
  EXPECT_EQ(RankFromName("rank-7.json.gz"), 7);
  EXPECT_EQ(RankFromName("rank-1_kineto.json.gz"), 1);
  EXPECT_EQ(RankFromName("rank_2.json"), 2);
  EXPECT_EQ(RankFromName("chakra_host_trace_5.json"), 5);
  EXPECT_EQ(RankFromName("worker0_step_12.1694128201545.pt.trace.json"), 0);
  EXPECT_EQ(RankFromName("mlp_et.json.gz"), std::nullopt);
  EXPECT_EQ(RankFromName("linear_et_1.0.1.json.gz"), std::nullopt);
  EXPECT_EQ(RankFromName("7.json"), std::nullopt);
  EXPECT_EQ(RankFromName("model_v2.0.json"), std::nullopt);
  EXPECT_EQ(RankFromName("trace_20260115.json"), std::nullopt) << "a date";
  EXPECT_EQ(RankFromName("model__1016005.json.gz"), std::nullopt);
  EXPECT_EQ(RankFromName("trace_131071.json"), 131'071);
  EXPECT_EQ(RankFromName("resnet50.3.json"), 3);
  EXPECT_EQ(RankFromName("all_reduce_8.3.et"), 3);
  EXPECT_EQ(RankFromName("llama7b-1.5.12.et.gz"), 12);
}

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
  Result<CaptureFolder> List() { return ListCaptureFolder(folder_.string(), RunContext()); }

  static constexpr const char* kHost =
      R"({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": [], "finish_ts": 1})";
  static constexpr const char* kDevice = R"({"schemaVersion": 1, "traceEvents": []})";
  static constexpr const char* kDeviceOfRank4 =
      R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 4}, "traceEvents": []})";

  std::filesystem::path folder_;
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
  EXPECT_TRUE(
      folder->damaged[1].message.ends_with("found other bytes, expected a trace: it is damaged"));
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

TEST_F(CaptureFolderTest, AnUnknownRankAmongSeveralIsAnError) {
  Put("rank-4.json", kHost);
  Put("mystery.json", kHost);
  const auto folder = List();
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, ErrorCode::kBadInput);
  EXPECT_NE(folder.error().message.find("mystery.json"), std::string::npos);
}

TEST_F(CaptureFolderTest, TwoTracesOfOneKindAndRankAreAnError) {
  Put("host.0.json", kHost);
  Put("rank-0.json", kHost);
  ASSERT_FALSE(List());
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
  EXPECT_TRUE(warnings[0].starts_with((capture / "host.1.json").string() + ": is a link out"))
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
