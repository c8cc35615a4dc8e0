#include "src/formats/profile/comm_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace etude {
namespace {

constexpr CollectiveType kAny = CollectiveType::kUnknown;

StrayKernel Kernel(uint32_t node, uint32_t stream, int64_t start, CollectiveType type = kAny) {
  return {NodeId(node), LaneId(stream), Nanos{start}, Nanos{start + 10}, type};
}
StrayCall Call(uint32_t node, uint32_t group, int64_t start,
               CollectiveType type = CollectiveType::kAllReduce) {
  return {NodeId(node), StringId(group), Nanos{start}, type};
}
// Returns pairs of kernels and their calls as text, such as "10-1 11-2", in the order of kernels.
std::string Pairs(const std::vector<StrayKernel>& kernels, const std::vector<StrayCall>& calls) {
  std::string text;
  std::vector<OrderedPair> pairs = PairByOrder(kernels, calls);
  std::ranges::sort(pairs, {}, &OrderedPair::kernel);
  for (const OrderedPair& pair : pairs) {
    text += (text.empty() ? "" : " ") + std::to_string(pair.kernel.value()) + "-" +
            std::to_string(pair.call.value());
  }
  return text;
}

TEST(CommOrder, AStreamAndAGroup) {
  EXPECT_EQ(Pairs({Kernel(11, 0, 150), Kernel(10, 0, 50)}, {Call(1, 0, 0), Call(2, 0, 100)}),
            "10-1 11-2");
  EXPECT_EQ(Pairs({Kernel(10, 0, 50)}, {Call(1, 0, 0), Call(2, 0, 100)}), "") << "not as many";
  EXPECT_EQ(Pairs({Kernel(10, 0, 50)}, {Call(1, 0, 70)}), "") << "over before it was asked for";
  EXPECT_EQ(Pairs({Kernel(10, 0, 50, CollectiveType::kAllGather)}, {Call(1, 0, 0)}), "");
  EXPECT_EQ(Pairs({Kernel(10, 0, 50, CollectiveType::kAllReduce)},
                  {Call(1, 0, 0, CollectiveType::kBarrier)}),
            "10-1");
  EXPECT_EQ(Pairs({}, {Call(1, 0, 0)}), "");
  EXPECT_EQ(Pairs({Kernel(10, 0, 50)}, {}), "");
}

TEST(CommOrder, SeveralStreamsAndGroups) {
  // Two streams, each with as many kernels as one group has calls.
  EXPECT_EQ(Pairs({Kernel(10, 0, 50), Kernel(11, 1, 60), Kernel(12, 1, 90)},
                  {Call(1, 0, 0), Call(2, 1, 10), Call(3, 0, 20)}),
            "10-2 11-1 12-3");
  // Pairs differ by their types.
  EXPECT_EQ(Pairs({Kernel(10, 0, 50, CollectiveType::kAllGather), Kernel(11, 1, 60)},
                  {Call(1, 0, 0), Call(2, 1, 10, CollectiveType::kAllGather)}),
            "10-2 11-1");
  // Ambiguous pairs.
  EXPECT_EQ(Pairs({Kernel(10, 0, 50), Kernel(11, 1, 60)}, {Call(1, 0, 0), Call(2, 1, 10)}), "");
  // All groups on one stream, and one group on two streams.
  EXPECT_EQ(Pairs({Kernel(10, 0, 50), Kernel(11, 0, 70)}, {Call(1, 0, 0), Call(2, 1, 10)}),
            "10-1 11-2");
  EXPECT_EQ(Pairs({Kernel(10, 0, 50), Kernel(11, 1, 70)}, {Call(1, 0, 0), Call(2, 0, 10)}),
            "10-1 11-2");
}

}  // namespace
}  // namespace etude
