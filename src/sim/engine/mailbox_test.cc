#include "src/sim/engine/mailbox.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>

namespace etude {
namespace {

MessageReceiver ReceiverOf(SimIndex subject) {
  return {.kind = MessageReceiver::Kind::kNode, .subject = subject};
}

TEST(Mailbox, FirstComeFirstServed) {
  Mailbox mailbox;
  const MatchKey key{.tag = 1, .bytes = 8, .source = RankClassId(2), .target = RankClassId(3)};
  EXPECT_FALSE(mailbox.Post(key, ReceiverOf(10)));
  EXPECT_FALSE(mailbox.Post(key, ReceiverOf(11)));
  EXPECT_FALSE(
      mailbox.Deliver({.tag = 1, .bytes = 9, .source = RankClassId(2), .target = RankClassId(3)}));
  EXPECT_EQ(mailbox.unreceived(), 1u);
  EXPECT_EQ(mailbox.Deliver(key)->subject, 10u);
  EXPECT_EQ(mailbox.Deliver(key)->subject, 11u);
  EXPECT_FALSE(mailbox.Deliver(key));
  EXPECT_EQ(mailbox.unreceived(), 2u);
  EXPECT_TRUE(mailbox.Post(key, ReceiverOf(12)));
  EXPECT_FALSE(mailbox.Post(key, ReceiverOf(13)));
}

// Compares with a map, using both unique and repeated keys, so that idle keys are removed.
TEST(Mailbox, RandomMessages) {
  std::mt19937 random(1);
  Mailbox mailbox;
  struct Match {
    uint64_t arrived = 0;
    std::deque<SimIndex> waiting;
  };
  std::map<int64_t, Match> expected;
  for (SimIndex i = 0; i < 20'000; ++i) {
    const int64_t tag = random() % 2 == 0 ? random() % 40 : random() % 1'000'000;
    const MatchKey key{.tag = tag, .bytes = 8};
    Match& match = expected[tag];
    if (random() % 2 == 0) {
      const bool was_there = match.arrived > 0;
      ASSERT_EQ(mailbox.Post(key, ReceiverOf(i)), was_there) << i;
      if (was_there) {
        --match.arrived;
      } else {
        match.waiting.push_back(i);
      }
      continue;
    }
    const auto got = mailbox.Deliver(key);
    ASSERT_EQ(got.has_value(), !match.waiting.empty()) << i;
    if (got) {
      ASSERT_EQ(got->subject, match.waiting.front());
      match.waiting.pop_front();
    } else {
      ++match.arrived;
    }
  }
  uint64_t unreceived = 0;
  for (const auto& [tag, match] : expected) unreceived += match.arrived;
  EXPECT_EQ(mailbox.unreceived(), unreceived);
}

}  // namespace
}  // namespace etude
