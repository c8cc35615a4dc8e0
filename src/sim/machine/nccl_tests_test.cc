#include "src/sim/machine/nccl_tests.h"

#include <gtest/gtest.h>

#include <string>

namespace etude {
namespace {

// As nccl-tests print it; the figures are ours.
constexpr const char* kReduceLog = R"(# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 1024 maxBytes 2048 step: 2(factor) warmup iters: 5 iters: 20
#
# Using devices
#  Rank  0 Group  0 Pid   4242 on    node0 device  0 [0000:18:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   4242 on    node0 device  1 [0000:2a:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
        1024           256     float     sum      -1    11.50    0.09    0.09      0    11.20    0.09    0.09      0
node0: a line of another program
        2048           512     float     sum      -1     12.5    0.16    0.16      0    12.10    0.17    0.17      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.125
)";

constexpr const char* kGatherLog =
    R"(# nThread 1 nGpus 1 minBytes 4096 maxBytes 4096 step: 2(factor)
#  Rank  0 Pid   1 on a device  0 [0x18] X
#  Rank  1 Pid   2 on a device  1 [0x2a] X
#  Rank  2 Pid   3 on b device  0 [0x18] X
#  Rank  3 Pid   4 on b device  1 [0x2a] X
#                                             out-of-place                       in-place
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
        4096           256   float    none    20.00    0.20    0.15    N/A    19.00    0.22    0.16    N/A
        4096           256   float    none    22.00    0.20    0.15    N/A    19.00    0.22    0.16    N/A
)";

TEST(NcclTests, TimesAreThoseOutOfPlace) {
  EXPECT_TRUE(IsNcclTestsOutput(kReduceLog));
  const auto file = ParseNcclTests(kReduceLog, "log.txt");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->machine.gpu, "NVIDIA H100 80GB HBM3");
  ASSERT_EQ(file->series.size(), 1U);
  EXPECT_EQ(file->series[0].kind, MeasuredKind(CollectiveType::kAllReduce));
  EXPECT_EQ(file->series[0].ranks, 2);
  EXPECT_EQ(file->series[0].points,
            (std::vector<MeasuredSeries::Point>{{.bytes = 1024, .time_ns = 11'500},
                                                {.bytes = 2048, .time_ns = 12'500}}));
}

// An older table without roots. The type is in the name; the size is that of the result, of which
// each of four ranks gives a quarter; of equal sizes the mean counts.
TEST(NcclTests, ATypeMayBeInTheNameOfTheFile) {
  const auto file = ParseNcclTests(kGatherLog, "runs/all_gather_perf.4.log");
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->series.size(), 1U);
  EXPECT_EQ(file->series[0].kind, MeasuredKind(CollectiveType::kAllGather));
  EXPECT_EQ(file->series[0].ranks, 4);
  EXPECT_EQ(file->series[0].points,
            (std::vector<MeasuredSeries::Point>{{.bytes = 1024, .time_ns = 21'000}}));
  const auto unknown = ParseNcclTests(kGatherLog, "runs.log");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message.substr(0, 51),
            "runs.log:8: found times of an unknown test, expecte");
}

TEST(NcclTests, SeveralTestsMayFollowEachOther) {
  std::string sends = kReduceLog;
  sends.replace(sends.find("all_reduce_perf"), 15, "sendrecv_perf");
  const auto file = ParseNcclTests(std::string(kReduceLog) + sends, "all.txt");
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->series.size(), 2U);
  EXPECT_NE(file->Find(kMessageKind, 2), nullptr);
  EXPECT_NE(file->Find(CollectiveType::kAllReduce, 2), nullptr);
}

TEST(NcclTests, NamesThePlaceOfErrors) {
  const auto error = [](const char* what, const char* by) {
    std::string text = kReduceLog;
    text.replace(text.find(what), std::string(what).size(), by);
    const auto file = ParseNcclTests(text, "log.txt");
    return file ? std::string("read") : file.error().message;
  };
  EXPECT_EQ(error("all_reduce_perf", "hypercube_perf").substr(0, 62),
            "log.txt:1: found the test 'hypercube_perf', expected one of al");
  EXPECT_EQ(error("#  Rank  1", "#  Node  1"),
            "log.txt:11: found times after 1 lines '# Rank …', expected one for each of at least 2 "
            "ranks");
  EXPECT_EQ(error("12.5 ", "soon "),
            "log.txt:13: found the time 'soon' of 2048 bytes, expected microseconds");
  EXPECT_EQ(ParseNcclTests("# nThread 1\n", "log.txt").error().message,
            "log.txt: found no sizes with times, expected the output of nccl-tests");
  EXPECT_FALSE(IsNcclTestsOutput("{}"));
}

}  // namespace
}  // namespace etude
