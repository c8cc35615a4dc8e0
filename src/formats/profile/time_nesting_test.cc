#include "src/formats/profile/time_nesting.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <optional>
#include <vector>

namespace etude {
namespace {

TimedNode Timed(uint32_t id, int64_t start, std::optional<int64_t> end, uint32_t lane = 0) {
  return {.node = NodeId(id),
          .lane = LaneId(lane),
          .start = Nanos{start},
          .end = Nanos{end.value_or(start)},
          .has_end = end.has_value()};
}

std::map<uint32_t, uint32_t> Parents(const std::vector<TimedNode>& nodes) {
  std::map<uint32_t, uint32_t> parents;
  for (const Nesting& nesting : NestByTime(nodes)) {
    EXPECT_TRUE(parents.emplace(nesting.node.value(), nesting.parent.value()).second);
  }
  return parents;
}

using Map = std::map<uint32_t, uint32_t>;

TEST(NestByTime, TheSmallestContainerIsTheParent) {
  EXPECT_EQ(
      Parents({Timed(2, 2, 3), Timed(0, 0, 10), Timed(1, 1, 5), Timed(3, 6, 10), Timed(4, 11, 12)}),
      (Map{{1, 0}, {2, 1}, {3, 0}}));
}

TEST(NestByTime, EqualTimesNestInTheOrderGiven) {
  EXPECT_EQ(Parents({Timed(0, 0, 5), Timed(1, 0, 5), Timed(2, 0, 5)}), (Map{{1, 0}, {2, 1}}));
  EXPECT_EQ(Parents({Timed(0, 0, 3), Timed(1, 0, 5)}), (Map{{0, 1}})) << "the longer one contains";
}

TEST(NestByTime, NeighboursAreNotNested) {
  EXPECT_EQ(Parents({Timed(0, 0, 5), Timed(1, 5, 9)}), Map{});
  EXPECT_EQ(Parents({Timed(0, 0, 5), Timed(1, 5, 5)}), (Map{{1, 0}})) << "no length: last callee";
}

TEST(NestByTime, OverlapIsNoNesting) {
  EXPECT_EQ(Parents({Timed(9, 0, 100), Timed(0, 1, 10), Timed(1, 5, 15), Timed(2, 6, 8),
                     Timed(3, 12, 14)}),
            (Map{{0, 9}, {1, 9}, {2, 1}, {3, 1}}));
}

TEST(NestByTime, LanesAreApart) {
  EXPECT_EQ(Parents({Timed(0, 0, 10, 0), Timed(1, 1, 5, 1), Timed(2, 2, 3, 1)}), (Map{{2, 1}}));
}

TEST(NestByTime, NodesWithoutAnEndContainNothing) {
  EXPECT_EQ(Parents({Timed(0, 0, 10), Timed(1, 1, std::nullopt), Timed(2, 2, 3)}),
            (Map{{1, 0}, {2, 0}}));
}

// For properly nested intervals, finds the parent for any order of the input.
RC_GTEST_PROP(NestByTimeProperty, FindsAnyTree, ()) {
  // Each node closes some of the open nodes and opens itself. Times count the steps.
  const auto closes = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 3));
  std::vector<TimedNode> nodes;
  std::vector<uint32_t> open;
  Map expected;
  int64_t time = 0;
  const auto close = [&] {
    nodes[open.back()].end = Nanos{time++};
    open.pop_back();
  };
  for (const int count : closes) {
    for (int i = 0; i < count && !open.empty(); ++i) close();
    const auto id = static_cast<uint32_t>(nodes.size());
    if (!open.empty()) expected[id] = open.back();
    nodes.push_back(Timed(id, time, time));
    ++time;
    open.push_back(id);
  }
  while (!open.empty()) close();
  if (!nodes.empty()) {
    std::rotate(nodes.begin(), nodes.begin() + *rc::gen::inRange<int64_t>(0, std::ssize(nodes)),
                nodes.end());
  }
  RC_ASSERT(Parents(nodes) == expected);
}

}  // namespace
}  // namespace etude
