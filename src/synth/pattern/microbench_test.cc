#include "src/synth/pattern/microbench.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "src/trace/validator.h"

namespace etude {
namespace {

// Returns a rank's nodes in order: kind, peer or group, bytes, ids of dependencies.
std::string Story(const Trace& trace) {
  std::string text;
  ForEachNode(trace, [&](NodeId node) {
    if (!text.empty()) text += "; ";
    text += Name(trace.kind(node));
    if (const Comm* comm = trace.comm(node)) {
      if (comm->type != CollectiveType::kUnknown) text += " " + std::string(Name(comm->type));
      if (trace.kind(node) == NodeKind::kSend) text += " " + std::to_string(*comm->dst);
      if (trace.kind(node) == NodeKind::kRecv) text += " " + std::to_string(*comm->src);
      if (comm->tag) text += " #" + std::to_string(*comm->tag);
      if (comm->group) text += " in " + std::string(trace.text(comm->group));
      text += " " + std::to_string(comm->bytes->count);
    }
    for (const NodeId dep : trace.deps(node)) text += " <" + std::to_string(trace.source_id(dep));
  });
  return text;
}

std::string StoryOf(MicrobenchOptions options, int64_t rank) {
  EXPECT_TRUE(CheckMicrobench(options)) << CheckMicrobench(options).error().message;
  const auto trace = MakeMicrobench(options, rank);
  EXPECT_TRUE(trace.has_value());
  EXPECT_TRUE(IsValid(Validate(*trace)));
  return Story(*trace);
}

MicrobenchOptions Of(Pattern pattern, int64_t ranks, int64_t count) {
  return {.pattern = pattern, .ranks = ranks, .size = Bytes{4096}, .count = count};
}

TEST(Microbench, CollectivesFollowEachOther) {
  EXPECT_EQ(StoryOf(Of(Pattern::kAllReduce, 4, 2), 3),
            "collective all_reduce 4096; collective all_reduce 4096 <0");
  EXPECT_EQ(StoryOf(Of(Pattern::kBarrier, 4, 1), 0), "collective all_reduce 4");
  MicrobenchOptions native = Of(Pattern::kBarrier, 4, 1);
  native.native = true;
  EXPECT_EQ(StoryOf(native, 0), "collective barrier 0");
}

TEST(Microbench, RootedOnesAreMessagesWithTheFirstRankOfTheGroup) {
  MicrobenchOptions options = Of(Pattern::kGather, 4, 2);
  options.group_size = 2;
  EXPECT_EQ(StoryOf(options, 2), "recv 3 #0 4096; compute <0; recv 3 #1 4096 <1; compute <2");
  EXPECT_EQ(StoryOf(options, 3), "send 2 #0 4096; send 2 #1 4096 <0");
  EXPECT_EQ(StoryOf(Of(Pattern::kBroadcast, 3, 1), 0),
            "send 1 #0 4096; send 2 #0 4096; compute <0 <1");
  options.native = true;
  EXPECT_EQ(StoryOf(options, 3), "collective gather in 2 4096; collective gather in 2 4096 <0");
}

TEST(Microbench, RingsAndPairs) {
  EXPECT_EQ(StoryOf(Of(Pattern::kRing, 3, 2), 0),
            "send 1 #0 4096; recv 2 #0 4096; send 1 #1 4096 <0 <1; recv 2 #1 4096 <0 <1");
  EXPECT_EQ(StoryOf(Of(Pattern::kPairs, 3, 1), 0), "send 1 #0 4096; recv 1 #1 4096 <0");
  EXPECT_EQ(StoryOf(Of(Pattern::kPairs, 3, 1), 1), "recv 0 #0 4096; send 0 #1 4096 <0");
  EXPECT_EQ(StoryOf(Of(Pattern::kPairs, 3, 1), 2), "compute") << "without a partner";
}

TEST(Microbench, OverlapComputesWhileItCommunicates) {
  EXPECT_EQ(StoryOf(Of(Pattern::kOverlap, 2, 2), 0),
            "compute; collective all_reduce 4096 <0; compute <0; collective all_reduce 4096 <1 <2");
}

// Every send has its receive with the same peer, tag and size, and collectives are the same on all
// ranks of a group.
TEST(Microbench, AllRanksFitTogether) {
  for (const PatternInfo& info : Patterns()) {
    MicrobenchOptions options = Of(info.pattern, 5, 3);
    std::map<std::tuple<int64_t, int64_t, int64_t, int64_t>, int> open;
    std::vector<int> collectives;
    for (int64_t rank = 0; rank < options.ranks; ++rank) {
      const Trace trace = MakeMicrobench(options, rank).value();
      EXPECT_GT(trace.node_count(), 0u);
      EXPECT_TRUE(trace.is_acyclic());
      int count = 0;
      for (const auto& [node, comm] : trace.comms()) {
        if (trace.kind(node) == NodeKind::kCollective) {
          ++count;
          continue;
        }
        const int sign = trace.kind(node) == NodeKind::kSend ? 1 : -1;
        open[{*comm.src, *comm.dst, *comm.tag, comm.bytes->count}] += sign;
      }
      collectives.push_back(count);
    }
    for (const auto& [message, count] : open) EXPECT_EQ(count, 0) << info.name;
    for (const int count : collectives) EXPECT_EQ(count, collectives[0]) << info.name;
  }
}

// Degenerate jobs that are valid in PyTorch, but that ASTRA-sim cannot run.
TEST(Microbench, OneRankAndNoBytesIfNative) {
  for (const auto& [ranks, size] : {std::pair{1, 4096}, std::pair{2, 0}}) {
    for (const Pattern pattern : {Pattern::kAllReduce, Pattern::kAllGather, Pattern::kBroadcast}) {
      MicrobenchOptions options = Of(pattern, ranks, 1);
      options.size = Bytes{size};
      EXPECT_FALSE(CheckMicrobench(options));
      options.native = true;
      EXPECT_TRUE(CheckMicrobench(options));
      EXPECT_TRUE(StoryOf(options, 0).ends_with(" " + std::to_string(size)));
    }
    MicrobenchOptions ring = Of(Pattern::kRing, ranks, 1);
    ring.size = Bytes{size};
    ring.native = true;
    EXPECT_FALSE(CheckMicrobench(ring)) << "messages need two ranks and bytes";
  }
  EXPECT_EQ(StoryOf(Of(Pattern::kCompute, 1, 2), 0), "compute; compute <0");
}

// Extreme sizes and numbers of ranks: nothing overflows, and each rank has its sends and receives.
TEST(Microbench, HugeSizesAndManyRanks) {
  MicrobenchOptions options = Of(Pattern::kScatter, 1000, 2);
  options.size = Bytes{INT64_MAX};
  ASSERT_TRUE(CheckMicrobench(options));
  const Trace root = MakeMicrobench(options, 0).value();
  EXPECT_EQ(root.node_count(), 2u * 1000) << "999 messages, and what the next ones wait for";
  EXPECT_EQ(root.comm(NodeId::FromIndex(0))->bytes, Bytes{INT64_MAX});
  EXPECT_EQ(MakeMicrobench(options, 999).value().node_count(), 2u);
  EXPECT_TRUE(IsValid(Validate(root)));
}

TEST(Microbench, GroupsAndWrongOptions) {
  MicrobenchOptions options = Of(Pattern::kAllToAll, 4, 1);
  options.group_size = 2;
  EXPECT_EQ(MicrobenchGroups(options),
            (std::map<int64_t, std::vector<int64_t>>{{1, {0, 1}}, {2, {2, 3}}}));
  EXPECT_EQ(StoryOf(options, 2), "collective all_to_all in 2 4096");
  options.group_size = 3;
  EXPECT_FALSE(CheckMicrobench(options));
  options = Of(Pattern::kAllGather, 4, 1);
  options.size = Bytes{1000};
  EXPECT_FALSE(CheckMicrobench(options));
  EXPECT_FALSE(CheckMicrobench(Of(Pattern::kRing, 1, 1)));
  options = Of(Pattern::kRing, 4, 1);
  options.group_size = 2;
  EXPECT_FALSE(CheckMicrobench(options));
  options = Of(Pattern::kCompute, 1, 1);
  options.duration = Nanos{1500};
  EXPECT_FALSE(CheckMicrobench(options));
}

}  // namespace
}  // namespace etude
