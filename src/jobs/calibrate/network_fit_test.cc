#include "src/jobs/calibrate/network_fit.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace etude {
namespace {

constexpr FittedNetwork kNetwork{.latency_ns = 20'000,
                                 .handling_ns = 5'000,
                                 .bytes_per_second = 2e9,
                                 .shared_bytes_per_second = 3e9,
                                 .added_bytes_per_second = 4e9};
constexpr int64_t kMiB = 1 << 20;

MachineFile FileOf(const FittedNetwork& network, const std::vector<MeasuredKind>& kinds,
                   const std::vector<int64_t>& ranks) {
  MachineFile file{.machine = {.backend = "gloo", .device = "cpu", .cores = 4},
                   .series = {},
                   .checks = {},
                   .network = {}};
  for (const MeasuredKind& kind : kinds) {
    for (const int64_t count : ranks) {
      if (kind == kMessageKind && count != 2) continue;
      MeasuredSeries series{.kind = kind, .ranks = count, .noisy = false, .points = {}};
      for (int64_t bytes = 1024; bytes <= 64 * kMiB; bytes *= 4) {
        const int64_t time = *TimeOnNetwork(network, file.machine, kind, count, bytes);
        series.points.push_back({.bytes = bytes, .time_ns = time, .spread = 0, .cores = 1});
      }
      file.series.push_back(series);
    }
  }
  return file;
}

TEST(NetworkFit, TimesByHand) {
  const MeasuredMachine gloo{.backend = "gloo"};
  const auto time = [&](const MeasuredKind& kind, int64_t ranks, int64_t bytes) {
    return *TimeOnNetwork(kNetwork, gloo, kind, ranks, bytes);
  };
  // Latency, and 2 GB/s of the rank's link.
  EXPECT_EQ(time(kMessageKind, 2, 2'000'000), 20'000 + 1'000'000);
  // Two steps with half of the bytes: the first at its begin, and after both what came is handled.
  // Both ranks send at once and share 3 GB/s; one of the parts is added, which takes 0.25 ms.
  EXPECT_NEAR(static_cast<double>(time(CollectiveType::kAllReduce, 2, 2'000'000)),
              2 * (20'000 + 1'000'000 / 1.5) + 3 * 5'000 + 250'000, 3);
}

TEST(NetworkFit, FindsTheNetworkOfItsTimes) {
  const std::vector<MeasuredKind> kinds{kMessageKind, CollectiveType::kAllReduce,
                                        CollectiveType::kAllGather, CollectiveType::kBroadcast};
  MachineFile file = FileOf(kNetwork, kinds, {2, 4});
  file.network = *FitNetwork(file, {});
  ASSERT_TRUE(file.network);
  EXPECT_NEAR(static_cast<double>(file.network->latency_ns), 20'000, 1'000);
  EXPECT_NEAR(file.network->bytes_per_second, 2e9, 0.05e9);
  EXPECT_NEAR(file.network->shared_bytes_per_second.value_or(0), 3e9, 0.3e9);
  const Table errors = *NetworkFitTable(file);
  for (const std::vector<Cell>& row : errors.rows) {
    EXPECT_LT(std::abs(std::get<double>(row[2])), 0.05) << std::get<std::string>(row[0]);
  }
}

TEST(NetworkFit, HasOnlyWhatTheTimesShow) {
  const FittedNetwork plain{.latency_ns = 20'000,
                            .handling_ns = 5'000,
                            .bytes_per_second = 2e9,
                            .shared_bytes_per_second = {},
                            .added_bytes_per_second = {}};
  const auto found =
      *FitNetwork(FileOf(plain, {kMessageKind, CollectiveType::kAllGather}, {2, 4}), {});
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->shared_bytes_per_second);
  EXPECT_FALSE(found->added_bytes_per_second);

  // Messages alone contain nothing of collectives.
  const auto messages = *FitNetwork(FileOf(plain, {kMessageKind}, {2}), {});
  ASSERT_TRUE(messages);
  EXPECT_EQ(messages->handling_ns, 0);
  EXPECT_NEAR(messages->bytes_per_second, 2e9, 0.05e9);

  // One size of messages has no bandwidth, but collectives of several sizes have one.
  MachineFile mixed = FileOf(plain, {kMessageKind, CollectiveType::kAllGather}, {2, 4});
  mixed.series[0].points.resize(1);
  const auto of_all = *FitNetwork(mixed, {});
  ASSERT_TRUE(of_all);
  EXPECT_NEAR(of_all->bytes_per_second, 2e9, 0.2e9);

  // One size shows no bandwidth.
  MachineFile file = FileOf(plain, {kMessageKind}, {2});
  file.series[0].points.resize(1);
  EXPECT_FALSE(*FitNetwork(file, {}));
}

}  // namespace
}  // namespace etude
