#include "src/sim/collective/step_algorithm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace etude {
namespace {

using enum CollectiveAlgorithm;
using enum CollectiveType;

CollectivePhase PhaseOf(CollectiveAlgorithm algorithm, CollectiveType type, int64_t count,
                        int64_t me, int64_t bytes, int64_t root = 0) {
  return {.type = type,
          .choice = {.algorithm = algorithm},
          .bytes = bytes,
          .members = {.count = count, .me = me},
          .root = root};
}

// Each message that is sent in a step is received in it, with its bytes. Returns the bytes that
// each member sends.
std::vector<int64_t> SentByMembers(CollectiveAlgorithm algorithm, CollectiveType type,
                                   int64_t count, int64_t bytes, int64_t root = 0,
                                   bool mirrored = false) {
  std::vector<int64_t> sent(static_cast<size_t>(count));
  using Messages = std::multiset<std::tuple<int64_t, int64_t, int64_t>>;
  Messages all_sends;
  Messages all_receives;
  const auto phase_of = [&](int64_t me) {
    CollectivePhase phase = PhaseOf(algorithm, type, count, me, bytes, root);
    phase.mirrored = mirrored;
    return phase;
  };
  const int64_t steps = StepCountOf(phase_of(0));
  for (int64_t step = 0; step < steps; ++step) {
    Messages sends;
    Messages receives;
    for (int64_t me = 0; me < count; ++me) {
      EXPECT_EQ(StepCountOf(phase_of(me)), steps);
      const PhaseStep made = StepOf(phase_of(me), step);
      for (const auto& [member, size] : made.sends) {
        EXPECT_TRUE(member >= 0 && member < count && member != me);
        sends.emplace(me, member, size);
        sent[static_cast<size_t>(me)] += size;
      }
      for (const auto& [member, size] : made.receives) receives.emplace(member, me, size);
    }
    // In a tree, a child sends in another step than its parent receives in.
    if (algorithm != kDoubleBinaryTree) {
      EXPECT_EQ(sends, receives) << "step " << step;
    }
    all_sends.merge(sends);
    all_receives.merge(receives);
  }
  EXPECT_EQ(all_sends, all_receives);
  return sent;
}

int64_t SumOf(const std::vector<int64_t>& values) {
  int64_t sum = 0;
  for (const int64_t value : values) sum += value;
  return sum;
}

TEST(StepAlgorithm, EachMemberSendsTheLeastData) {
  for (int64_t count = 2; count <= 33; ++count) {
    const int64_t part = 64;
    const int64_t whole = part * count;
    for (const CollectiveAlgorithm algorithm : {kBidirectionalRing, kBruck, kPat}) {
      SCOPED_TRACE(testing::Message() << count << " members, " << static_cast<int>(algorithm));
      const auto each = [&](int64_t bytes) {
        return std::vector<int64_t>(static_cast<size_t>(count), bytes);
      };
      EXPECT_EQ(SentByMembers(algorithm, kAllGather, count, part), each((count - 1) * part));
      EXPECT_EQ(SentByMembers(algorithm, kReduceScatter, count, whole), each((count - 1) * part));
      EXPECT_EQ(SentByMembers(algorithm, kAllReduce, count, whole), each(2 * (count - 1) * part));
    }
  }
}

TEST(StepAlgorithm, BruckTakesAsManyStepsAsBits) {
  for (const auto& [count, steps] : {std::pair{2, 1}, {3, 2}, {4, 2}, {5, 3}, {8, 3}, {9, 4}}) {
    for (const CollectiveAlgorithm algorithm : {kBruck, kPat}) {
      EXPECT_EQ(StepCountOf(PhaseOf(algorithm, kAllGather, count, 0, 8)), steps);
      EXPECT_EQ(StepCountOf(PhaseOf(algorithm, kAllReduce, count, 0, 8)), 2 * steps);
    }
  }
  // Five members: distances 1, 2 and 4 with 1, 2 and 1 parts. PAT begins far away.
  const auto sends = [&](CollectiveAlgorithm algorithm, CollectiveType type, int64_t step) {
    const int64_t bytes = type == kAllGather ? 10 : 50;
    return StepOf(PhaseOf(algorithm, type, 5, 1, bytes), step).sends.front();
  };
  using Message = PhaseStep::Message;
  EXPECT_EQ(sends(kBruck, kAllGather, 0), (Message{2, 10}));
  EXPECT_EQ(sends(kBruck, kAllGather, 1), (Message{3, 20}));
  EXPECT_EQ(sends(kBruck, kAllGather, 2), (Message{0, 10}));
  EXPECT_EQ(sends(kPat, kAllGather, 0), (Message{0, 10}));
  EXPECT_EQ(sends(kPat, kAllGather, 1), (Message{3, 10}));
  EXPECT_EQ(sends(kPat, kAllGather, 2), (Message{2, 20}));
  // A reduce-scatter is the all-gather back in time.
  EXPECT_EQ(sends(kPat, kReduceScatter, 0), (Message{0, 20}));
  EXPECT_EQ(sends(kPat, kReduceScatter, 1), (Message{4, 10}));
  EXPECT_EQ(sends(kPat, kReduceScatter, 2), (Message{2, 10}));
  EXPECT_EQ(sends(kBruck, kReduceScatter, 0), (Message{2, 10}));
  EXPECT_EQ(sends(kBruck, kReduceScatter, 1), (Message{4, 20}));
  // Distances 1 to 4 as bits: 1 and 3; 2 and 3; 4.
  EXPECT_EQ(sends(kBruck, kAllToAll, 0), (Message{2, 20}));
  EXPECT_EQ(sends(kBruck, kAllToAll, 1), (Message{3, 20}));
  EXPECT_EQ(sends(kBruck, kAllToAll, 2), (Message{0, 10}));
}

TEST(StepAlgorithm, HalvingAndDoublingOfAnyNumber) {
  // Six members: 4 and 5 give their data to 0 and 1, and get their results.
  const auto sent = SentByMembers(kHalvingDoubling, kAllReduce, 6, 600);
  // 0 and 2: halves with two and one parts, then a quarter; the same back; 0 also the result.
  EXPECT_EQ(sent[4], 600);
  EXPECT_EQ(sent[5], 600);
  // 0 sends 2 and 3's parts (2 of 100), then 1's (2 of 100); doubling: its own 2, then 4.
  EXPECT_EQ(sent[0], 200 + 200 + 200 + 400 + 600);
  // 2 sends 0 and 1's parts (4), then 3's (1); doubling: its own 1, then 2.
  EXPECT_EQ(sent[2], 400 + 100 + 100 + 200);
  for (int64_t count = 3; count <= 33; ++count) {
    if ((count & (count - 1)) == 0) continue;
    SCOPED_TRACE(count);
    SentByMembers(kHalvingDoubling, kAllGather, count, 64);
    SentByMembers(kHalvingDoubling, kReduceScatter, count, 64 * count);
    SentByMembers(kHalvingDoubling, kAllReduce, count, 64 * count);
  }
}

TEST(StepAlgorithm, TreesOfAnyNumber) {
  for (int64_t count = 2; count <= 65; ++count) {
    for (const bool mirrored : {false, true}) {
      SCOPED_TRACE(testing::Message() << count << " members" << (mirrored ? ", second" : ""));
      // Each member but the root sends its data up once, and each gets the sum once.
      const auto sent = SentByMembers(kDoubleBinaryTree, kAllReduce, count, 10, 0, mirrored);
      EXPECT_EQ(SumOf(sent), 2 * (count - 1) * 10);
      int64_t deepest = 0;
      for (int64_t me = 0; me < count; ++me) {
        int64_t depth = 0;
        for (int64_t at = me; depth <= count; ++depth) {
          CollectivePhase phase = PhaseOf(kDoubleBinaryTree, kAllReduce, count, at, 10);
          phase.mirrored = mirrored;
          EXPECT_LE(StepOf(phase, 0).receives.size(), 2U);
          const PhaseStep up = StepOf(phase, 1);
          if (up.sends.empty()) break;
          at = up.sends.front().member;
        }
        deepest = std::max(deepest, depth);
      }
      int64_t bits = 0;
      while ((int64_t{1} << bits) < count) ++bits;
      EXPECT_LE(deepest, bits);
    }
  }
}

TEST(StepAlgorithm, GathersAndReducesAtARoot) {
  EXPECT_EQ(SentByMembers(kDirect, kGather, 4, 100, 2), (std::vector<int64_t>{100, 100, 0, 100}));
  EXPECT_EQ(SentByMembers(kDirect, kScatter, 4, 400, 1), (std::vector<int64_t>{0, 300, 0, 0}));
  EXPECT_EQ(SentByMembers(kRing, kReduce, 4, 400, 1), (std::vector<int64_t>{400, 300, 400, 400}));
}

}  // namespace
}  // namespace etude
