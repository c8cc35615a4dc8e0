#include "src/base/container/intervals.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>

namespace etude {
namespace {

Interval Of(int64_t begin, int64_t end) { return {Nanos{begin}, Nanos{end}}; }
std::vector<Interval> List(const TimeSet& set) {
  return {set.intervals().begin(), set.intervals().end()};
}
using Intervals = std::vector<Interval>;

TEST(TimeSet, UnionMergesWhatOverlapsOrTouches) {
  const TimeSet set({Of(10, 20), Of(0, 5), Of(15, 30), Of(5, 7), Of(40, 40), Of(12, 13)});
  EXPECT_EQ(List(set), (Intervals{Of(0, 7), Of(10, 30)}));
  EXPECT_EQ(set.length(), Nanos{27});
}

TEST(TimeSet, LengthWithinAWindow) {
  const TimeSet set({Of(0, 10), Of(20, 30)});
  EXPECT_EQ(set.Within(Of(5, 25)), Nanos{10});
  EXPECT_EQ(set.Within(Of(10, 20)), Nanos{0});
  EXPECT_EQ(set.Within(Of(-5, 100)), Nanos{20});
  EXPECT_EQ(set.Within(Of(25, 5)), Nanos{0}) << "no window";
  EXPECT_EQ(TimeSet().Within(Of(0, 1)), Nanos{0});
}

TEST(TimeSet, WithoutAndOr) {
  const TimeSet a({Of(0, 10), Of(20, 30)});
  const TimeSet b({Of(2, 4), Of(8, 22), Of(29, 40)});
  EXPECT_EQ(List(a.Without(b)), (Intervals{Of(0, 2), Of(4, 8), Of(22, 29)}));
  EXPECT_EQ(List(a.Or(b)), (Intervals{Of(0, 40)}));
}

// Compares with sets of single moments.
TEST(TimeSet, AgreesWithMoments) {
  const bool holds = rc::check("sets of moments", [] {
    const auto draw = [] {
      Intervals intervals;
      std::set<int64_t> moments;
      for (int i = *rc::gen::inRange(0, 8); i > 0; --i) {
        const int64_t begin = *rc::gen::inRange<int64_t>(0, 40);
        const int64_t end = begin + *rc::gen::inRange<int64_t>(0, 10);
        intervals.push_back(Of(begin, end));
        for (int64_t t = begin; t < end; ++t) moments.insert(t);
      }
      return std::pair(TimeSet(intervals), moments);
    };
    const auto [a, in_a] = draw();
    const auto [b, in_b] = draw();
    const auto only_a = std::ranges::count_if(in_a, [&](int64_t t) { return !in_b.contains(t); });
    RC_ASSERT(a.length() == Nanos{static_cast<int64_t>(in_a.size())});
    RC_ASSERT(a.Or(b).length() == Nanos{only_a + static_cast<int64_t>(in_b.size())});
    RC_ASSERT(a.Without(b).length() == Nanos{only_a});
    const int64_t from = *rc::gen::inRange<int64_t>(0, 50);
    const auto inside = std::distance(in_a.lower_bound(from), in_a.lower_bound(from + 7));
    RC_ASSERT(a.Within(Of(from, from + 7)) == Nanos{inside});
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace etude
