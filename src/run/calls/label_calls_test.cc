#include "src/run/calls/label_calls.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace etude {
namespace {

constexpr uint64_t kThread = 1000;  // node of the backend's thread

IssuedCall Call(uint64_t id, CollectiveType type) { return {.id = id, .type = type}; }

BackendLabel Label(uint64_t id, CollectiveType type) {
  BackendLabel label{.id = id};
  label.comm.type = type;
  label.parent = kThread;
  return label;
}

using Found = std::vector<std::optional<size_t>>;

TEST(FindCallsOfLabels, AStatedCallIsStrongerThanMemory) {
  IssuedCall first = Call(1, CollectiveType::kAllReduce);
  IssuedCall second = Call(2, CollectiveType::kAllReduce);
  first.storages = second.storages = {7};
  BackendLabel label = Label(3, CollectiveType::kAllReduce);
  label.storages = {7};
  EXPECT_EQ(FindCallsOfLabels(std::vector{first, second}, std::vector{label}).calls, Found{1});
  label.stated = {1};
  EXPECT_EQ(FindCallsOfLabels(std::vector{first, second}, std::vector{label}).calls, Found{0});
}

TEST(FindCallsOfLabels, ALabelThatDependsOnSomethingElseHasNoCall) {
  BackendLabel label = Label(3, CollectiveType::kAllReduce);
  label.stated = {99};
  const CallsOfLabels found =
      FindCallsOfLabels(std::vector{Call(1, CollectiveType::kAllReduce)}, std::vector{label});
  EXPECT_EQ(found.calls, Found{std::nullopt});
  EXPECT_FALSE(found.has_label[0]);
}

// Two collectives on one buffer: each label takes the last call before it that is left.
TEST(FindCallsOfLabels, MemoryThatIsUsedAgain) {
  std::vector<IssuedCall> calls{Call(1, CollectiveType::kAllReduce),
                                Call(3, CollectiveType::kAllReduce)};
  std::vector<BackendLabel> labels{Label(2, CollectiveType::kAllReduce),
                                   Label(4, CollectiveType::kAllReduce)};
  for (IssuedCall& call : calls) call.storages = {7};
  for (BackendLabel& label : labels) label.storages = {7};
  EXPECT_EQ(FindCallsOfLabels(calls, labels).calls, (Found{0, 1}));
}

// Gloo reduces a copy, which has another address but the same size.
TEST(FindCallsOfLabels, ACopyIsKnownByItsSize) {
  std::vector<IssuedCall> calls{Call(1, CollectiveType::kReduceScatter),
                                Call(2, CollectiveType::kReduceScatter)};
  calls[0].sizes = {64, 32};
  calls[1].sizes = {16, 8};
  for (IssuedCall& call : calls) {
    call.works_on_copy = true;
    call.storages = {7};
  }
  std::vector<BackendLabel> labels{Label(3, CollectiveType::kAllReduce),
                                   Label(4, CollectiveType::kAllReduce)};
  labels[0].elements = 16;
  labels[1].elements = 64;
  for (BackendLabel& label : labels) label.storages = {7};
  EXPECT_EQ(FindCallsOfLabels(calls, labels).calls, (Found{1, 0}));
}

// Barriers have no memory. The group of the thread is known from its other labels.
TEST(FindCallsOfLabels, TheThreadOfALabelTellsItsGroup) {
  std::vector<IssuedCall> calls{Call(1, CollectiveType::kAllReduce),
                                Call(2, CollectiveType::kBarrier),
                                Call(3, CollectiveType::kBarrier)};
  calls[0].storages = {7};
  calls[0].group = calls[2].group = StringId(5);
  calls[1].group = StringId(6);
  // Two barriers with different arguments, so that their order is not usable.
  calls[1].rank = 1;
  std::vector<BackendLabel> labels{Label(4, CollectiveType::kAllReduce),
                                   Label(5, CollectiveType::kBarrier)};
  labels[0].storages = {7};
  labels[0].elements = 8;
  EXPECT_EQ(FindCallsOfLabels(calls, labels).calls, (Found{0, 2}));
}

TEST(FindCallsOfLabels, OrderDecidesAmongEqualCallsOnly) {
  std::vector<IssuedCall> calls{Call(1, CollectiveType::kBroadcast),
                                Call(2, CollectiveType::kBroadcast)};
  const std::vector<BackendLabel> labels{Label(3, CollectiveType::kBroadcast),
                                         Label(4, CollectiveType::kBroadcast)};
  EXPECT_EQ(FindCallsOfLabels(calls, labels).calls, (Found{0, 1}));
  calls[0].rank = 0;
  calls[1].rank = 1;
  const CallsOfLabels found = FindCallsOfLabels(calls, labels);
  EXPECT_EQ(found.calls, (Found{std::nullopt, 1}));
  EXPECT_TRUE(found.has_label[0]);
}

TEST(FindCallsOfLabels, ASendIsNoCollective) {
  IssuedCall send{.id = 1, .kind = NodeKind::kSend};
  send.storages = {7};
  BackendLabel label = Label(2, CollectiveType::kAllReduce);
  label.storages = {7};
  EXPECT_EQ(FindCallsOfLabels(std::vector{send}, std::vector{label}).calls, Found{std::nullopt});
  label.kind = NodeKind::kSend;
  label.comm.type = CollectiveType::kUnknown;
  EXPECT_EQ(FindCallsOfLabels(std::vector{send}, std::vector{label}).calls, Found{0});
}

}  // namespace
}  // namespace etude
