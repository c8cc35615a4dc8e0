#include "src/analysis/comm/comm_model.h"

#include <optional>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

CommSize AllReduceOf(int64_t bytes, int64_t ranks = 4) {
  return {.type = CollectiveType::kAllReduce, .bytes = Bytes{bytes}, .ranks = ranks};
}

TEST(CommModel, BytesOnTheWire) {
  const auto wire = [](CollectiveType type) {
    return WireBytes({.type = type, .bytes = Bytes{1000}, .ranks = 4});
  };
  EXPECT_DOUBLE_EQ(wire(CollectiveType::kAllReduce), 1500);
  EXPECT_DOUBLE_EQ(wire(CollectiveType::kAllGather), 3000);
  EXPECT_DOUBLE_EQ(wire(CollectiveType::kReduceScatter), 750);
  EXPECT_DOUBLE_EQ(wire(CollectiveType::kAllToAll), 750);
  EXPECT_DOUBLE_EQ(wire(CollectiveType::kBroadcast), 1000);
  EXPECT_DOUBLE_EQ(wire(CollectiveType::kBarrier), 0);
  EXPECT_DOUBLE_EQ(WireBytes({.kind = NodeKind::kSend, .bytes = Bytes{1000}, .ranks = 4}), 1000);
}

TEST(CommModel, FindsLatencyAndBandwidthThatWerePlanted) {
  const CommModel planted{.latency = Nanos{20'000}, .bytes_per_second = 1e9};
  std::vector<CommTime> times;
  for (const int64_t bytes : {1'000, 50'000, 4'000'000}) {
    const CommSize size = AllReduceOf(bytes);
    times.push_back({size, planted.TimeOf(size)});
    // One that waited for a late rank.
    times.push_back({size, planted.TimeOf(size) + Nanos{3'000'000}});
  }
  const CommFit fit = FitCommModel(times).value();
  EXPECT_EQ(fit.communications, 6u);
  EXPECT_EQ(fit.sizes, 3u);
  EXPECT_NEAR(static_cast<double>(fit.model.latency.count), 20'000, 20);
  EXPECT_NEAR(fit.model.bytes_per_second.value(), 1e9, 1e6);
  EXPECT_LT(fit.typical_error, 1e-3);
}

TEST(CommModel, OneSizeIsBandwidthAlone) {
  const CommFit fit = FitCommModel({{{AllReduceOf(1'000'000, 2), Nanos{1'000'000}}}}).value();
  EXPECT_EQ(fit.model.latency, Nanos{});
  EXPECT_NEAR(fit.model.bytes_per_second.value(), 1e9, 1);
}

TEST(CommModel, TimesThatFallWithSizeAreLatencyAlone) {
  const CommFit fit =
      FitCommModel({{{AllReduceOf(1000), Nanos{3000}}, {AllReduceOf(2000), Nanos{1000}}}}).value();
  EXPECT_FALSE(fit.model.bytes_per_second);
  EXPECT_GT(fit.model.latency, Nanos{});
  const CommSize barrier{.type = CollectiveType::kBarrier};
  EXPECT_EQ(FitCommModel({{{barrier, Nanos{5000}}}}).value().model.latency, Nanos{5000});
}

TEST(CommModel, WithoutTimesThereIsNone) {
  EXPECT_FALSE(FitCommModel({}));
  EXPECT_FALSE(FitCommModel({{{AllReduceOf(1000), Nanos{}}}}));
}

// Number of ranks: that of the communication, else of its group, else of the job.
TEST(CommModel, TimesKnowTheRanksThatTookPart) {
  TraceBuilder builder;
  builder.info().world_size = 8;
  builder.AddProcessGroup({.name = builder.Intern("pair"),
                           .ranks = builder.InternInts(std::vector<int64_t>{1, 3}),
                           .size = 4});
  const auto add = [&](std::string_view group, std::optional<int64_t> said) {
    Comm comm{.type = CollectiveType::kAllReduce, .bytes = Bytes{64}, .group_size = said};
    if (!group.empty()) comm.group = builder.Intern(group);
    builder.SetComm(builder.AddNode({.source_id = builder.node_count(),
                                     .kind = NodeKind::kCollective,
                                     .place = Place::kDevice,
                                     .name = builder.Intern("n"),
                                     .duration = Nanos{5}}),
                    comm);
  };
  add("pair", 3);
  add("pair", std::nullopt);
  add("", std::nullopt);
  std::vector<int64_t> ranks;
  for (const CommTime& one : CommTimes(*builder.Finish())) ranks.push_back(one.size.ranks);
  EXPECT_EQ(ranks, (std::vector<int64_t>{3, 2, 8}));
}

}  // namespace
}  // namespace etude
