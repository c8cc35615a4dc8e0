#include "src/analysis/comm_log.h"

#include <gtest/gtest.h>

#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

class CommNodesTest : public testing::Test {
 protected:
  NodeId Add(NodeKind kind, std::optional<uint64_t> parent, Place place = Place::kHost) {
    return builder_.AddNode(
        {.source_id = ++last_, .kind = kind, .place = place, .name = name_, .parent = parent});
  }

  TraceBuilder builder_;
  StringId name_ = builder_.Intern("n");
  uint64_t last_ = 0;
};

TEST_F(CommNodesTest, ACallStandsForThoseInsideIt) {
  const NodeId outer = Add(NodeKind::kCollective, {});   // 1
  Add(NodeKind::kOperator, 1);                           // 2
  Add(NodeKind::kSend, 2);                               // 3, inside
  const NodeId beside = Add(NodeKind::kCollective, {});  // 4
  EXPECT_EQ(CommNodes(builder_.Finish().value()), (std::vector<NodeId>{outer, beside}));
}

TEST_F(CommNodesTest, WhatDevicesDidStandsForTheHostsCalls) {
  Add(NodeKind::kCollective, {});
  const NodeId kernel = Add(NodeKind::kCollective, 1, Place::kDevice);
  EXPECT_EQ(CommNodes(builder_.Finish().value()), std::vector<NodeId>{kernel});
}

// As deep as there are calls: the way up is gone once.
TEST_F(CommNodesTest, DeepNesting) {
  constexpr uint64_t kDepth = 200'000;
  Add(NodeKind::kOperator, {});
  while (last_ < kDepth) Add(NodeKind::kOperator, last_);
  for (uint64_t i = 0; i < kDepth; ++i) Add(NodeKind::kSend, kDepth);
  EXPECT_EQ(CommNodes(builder_.Finish().value()).size(), kDepth);
}

}  // namespace
}  // namespace etude
