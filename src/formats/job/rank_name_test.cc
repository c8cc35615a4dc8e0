#include "src/formats/job/rank_name.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

std::vector<std::optional<int64_t>> RanksOf(const std::vector<std::string>& names) {
  std::vector<RankName> read;
  for (const std::string& name : names) read.push_back(ReadRankName(name));
  return RanksFromNames(read);
}

TEST(RankName, KnowsTheRanksThatToolsWrite) {
  EXPECT_EQ(RankFromName("host.3.json.gz"), 3);
  EXPECT_EQ(RankFromName("device.12.json"), 12);
  EXPECT_EQ(RankFromName("x_host_4.json"), 4);
  EXPECT_EQ(RankFromName("chakra.0.et.zst"), 0);
  EXPECT_EQ(RankFromName("rank-7.json.gz"), 7);
  EXPECT_EQ(RankFromName("rank-1_kineto.json.gz"), 1);
  EXPECT_EQ(RankFromName("rank_2.json"), 2);
  EXPECT_EQ(RankFromName("Rank3.json"), 3);
  EXPECT_EQ(RankFromName("globalRank5.json"), 5);
  EXPECT_EQ(RankFromName("VllmWorker-6.json"), 6);
  EXPECT_EQ(RankFromName("worker0_step_12.1694128201545.pt.trace.json"), 0);
  EXPECT_EQ(RankFromName("dp0_pp0_tp1_dcp0_ep1_rank1.1773709679453551115.pt.trace.json.gz"), 1);
  EXPECT_EQ(RankFromName("global_rank_9_local_rank_1.json"), 9);
  EXPECT_EQ(RankFromName("all_reduce_8.3.et"), 3);
  EXPECT_EQ(RankFromName("x_7.et"), 7);
  EXPECT_EQ(RankFromName("llama7b-1.5.12.et.gz"), 12);
}

TEST(RankName, TakesNoOtherNumberForARank) {
  for (const char* name :
       {"mlp_et.json.gz", "linear_et_1.0.1.json.gz", "7.json", "model_v2.0.json",
        "trace_20260115.json", "trace_2024.json", "step_100.json", "kineto_00000012.json",
        "chakra_host_trace_5.json", "resnet50.3.json", "frank3.json", "local_rank_1.json",
        "tp_rank_0_pp_rank_1.json", "rank_0_and_rank_1.json", "localhost_1234.json",
        "node_99.async_llm.1773709679453551615.pt.trace.json.gz"}) {
    EXPECT_EQ(RankFromName(name), std::nullopt) << name;
  }
}

TEST(RankName, NumbersAreRanksWhereTheyCountFromZero) {
  using Ranks = std::vector<std::optional<int64_t>>;
  EXPECT_EQ(RanksOf({"trace_0.json", "trace_1.json", "trace_2.json"}), (Ranks{0, 1, 2}));
  EXPECT_EQ(RanksOf({"trace_0.json", "trace_2.json"}), (Ranks{0, 2})) << "one is missing";
  EXPECT_EQ(RanksOf({"a-0.json", "a-1.json", "b-0.json"}), (Ranks{0, 1, std::nullopt}));
  EXPECT_EQ(RanksOf({"tp_rank0.json", "tp_rank1.json"}), (Ranks{0, 1}));
  EXPECT_EQ(RanksOf({"trace_0.json"}), (Ranks{std::nullopt}));
  EXPECT_EQ(RanksOf({"trace_0.json", "trace_100.json"}), (Ranks{std::nullopt, std::nullopt}));
  EXPECT_EQ(RanksOf({"trace_1.json", "trace_2.json"}), (Ranks{std::nullopt, std::nullopt}));
  EXPECT_EQ(RanksOf({"step_0.json", "step_1.json"}), (Ranks{std::nullopt, std::nullopt}));
  EXPECT_EQ(RanksOf({"epoch-0.json", "epoch-1.json"}), (Ranks{std::nullopt, std::nullopt}));
}

TEST(RankName, FilesOfOneRecordingHaveOneSeries) {
  const RankName name = ReadRankName("run1_rank3.1773709679453551115.pt.trace.json.gz");
  EXPECT_EQ(name.time, 1773709679453551115);
  EXPECT_EQ(name.series, ReadRankName("run1_rank0.1773709679453551015.pt.trace.json").series);
  EXPECT_NE(name.series, ReadRankName("run2_rank3.1773709679453551115.pt.trace.json").series);
}

TEST(ComesBefore, CountsAsPeopleDo) {
  EXPECT_TRUE(ComesBefore("rank_2.json", "rank_10.json"));
  EXPECT_FALSE(ComesBefore("rank_10.json", "rank_2.json"));
  EXPECT_TRUE(ComesBefore("rank.json", "rank.json.gz"));
  EXPECT_TRUE(ComesBefore("a1", "a01") != ComesBefore("a01", "a1"));
  EXPECT_FALSE(ComesBefore("a", "a"));
}

}  // namespace
}  // namespace etude
