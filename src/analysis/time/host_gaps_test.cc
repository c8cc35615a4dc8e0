#include "src/analysis/time/host_gaps.h"

#include <gtest/gtest.h>

#include <optional>
#include <string_view>
#include <vector>

#include "src/run/step/recorded_step.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

// A step from 100 to 200 ns with operators of given times.
class HostGapsTest : public testing::Test {
 protected:
  HostGapsTest() { Add("ProfilerStep#3", 100, 100, ""); }

  void Operator(int64_t start, int64_t duration) {
    Add("aten::neg", start, duration, "aten::neg(Tensor self) -> Tensor");
  }
  std::optional<HostGaps> Find(const std::vector<size_t>& operators,
                               const std::vector<size_t>& others, const TimeSet& waits = {}) {
    trace_.emplace(builder_.Finish().value());
    step_.emplace(RecordedStep::Select(*trace_, "").value());
    const auto nodes = [&](const std::vector<size_t>& indices) {
      std::vector<NodeId> found;
      for (const size_t i : indices) found.push_back(step_->top_operators()[i]);
      return found;
    };
    const std::vector<NodeId> tops = nodes(operators);
    const std::vector<NodeId> rest = nodes(others);
    return FindHostGaps(*trace_, step_->mark(),
                        {.operators = tops, .others = rest, .waits = waits});
  }

 private:
  void Add(std::string_view name, int64_t start, std::optional<int64_t> duration,
           std::string_view schema) {
    NodeRow row{.source_id = ++id_,
                .kind = NodeKind::kCompute,
                .place = Place::kHost,
                .name = builder_.Intern(name),
                .start = Nanos{start},
                .op_schema = builder_.Intern(schema)};
    if (duration >= 0) row.duration = Nanos{*duration};
    if (id_ > 1) row.parent = 1;
    builder_.AddNode(row);
  }

  TraceBuilder builder_;
  uint64_t id_ = 0;
  std::optional<Trace> trace_;
  std::optional<RecordedStep> step_;
};

TEST_F(HostGapsTest, AreWhatNoOperatorCovers) {
  Operator(110, 20);
  Operator(135, 30);
  Operator(140, 10);  // on another thread, while the previous one runs
  Operator(170, 20);
  const auto gaps = Find({0, 1, 2, 3}, {});
  ASSERT_TRUE(gaps);
  EXPECT_EQ(gaps->before, (std::vector<Nanos>{{10}, {5}, {0}, {5}}));
  EXPECT_EQ(gaps->after, Nanos{10});
  EXPECT_EQ(gaps->total(), Nanos{30});
}

TEST_F(HostGapsTest, AreNotTheTimeOfWhatIsNotReplayed) {
  Operator(110, 20);
  Operator(135, 30);
  Operator(170, 20);
  const auto gaps = Find({0, 2}, {1});
  ASSERT_TRUE(gaps);
  EXPECT_EQ(gaps->before, (std::vector<Nanos>{{10}, {10}}));
  EXPECT_EQ(gaps->after, Nanos{10});
}

TEST_F(HostGapsTest, EndWithTheStep) {
  Operator(150, 80);
  const auto gaps = Find({0}, {});
  ASSERT_TRUE(gaps);
  EXPECT_EQ(gaps->before, std::vector<Nanos>{{50}});
  EXPECT_EQ(gaps->after, Nanos{0});
}

TEST_F(HostGapsTest, AreUnknownWhereATimeIs) {
  Operator(110, 20);
  Operator(140, -1);
  EXPECT_FALSE(Find({0, 1}, {}));
}

// The first of twenty operators has no time: it belongs to the gap before the next one.
TEST_F(HostGapsTest, OneOfManyOperatorsWithoutATimeHasNoGap) {
  std::vector<size_t> all = {0};
  Operator(101, -1);
  for (int i = 0; i < 19; ++i) {
    Operator(110 + 4 * i, 4);
    all.push_back(all.size());
  }
  const auto gaps = Find(all, {});
  ASSERT_TRUE(gaps);
  EXPECT_EQ(gaps->before[0], Nanos{0});
  EXPECT_EQ(gaps->before[1], Nanos{10});
  EXPECT_EQ(gaps->before[2], Nanos{0});
}

// Gaps 100-110, 120-140 (of which 125-130 is another operator), 150-170 and 180-200.
TEST_F(HostGapsTest, WaitsForCommunicationsAreNone) {
  Operator(110, 10);
  Operator(125, 5);
  Operator(140, 10);
  Operator(170, 10);
  const auto gaps =
      Find({0, 2, 3}, {1},
           TimeSet({{Nanos{115}, Nanos{135}}, {Nanos{140}, Nanos{175}}, {Nanos{182}, Nanos{185}}}));
  ASSERT_TRUE(gaps);
  EXPECT_EQ(gaps->before, (std::vector<Nanos>{Nanos{10}, Nanos{5}, Nanos{0}}));
  EXPECT_EQ(gaps->after, Nanos{17});
  EXPECT_EQ(gaps->waits, Nanos{5 + 5 + 20 + 3});
  EXPECT_EQ(gaps->total(), Nanos{32});
}

TEST(MarkIdle, TheLongestGapsAreWaits) {
  const auto marked = [](Waiting waiting) {
    HostGaps gaps{.before = {{300'000}, {900'000}, {50'000}}, .after = {500'000}};
    MarkIdle(gaps, waiting);
    return gaps.idle;
  };
  const Nanos none;
  EXPECT_EQ(marked({.time = {1'000'000}, .times = 9}),
            (std::vector<Nanos>{none, {900'000}, none, {100'000}}));
  EXPECT_EQ(marked({.time = {1'000'000}, .times = 1}),
            (std::vector<Nanos>{none, {900'000}, none, none}));
  // Gaps that are too short for a wait stay busy.
  EXPECT_EQ(marked({.time = {9'000'000}, .times = 9}),
            (std::vector<Nanos>{{300'000}, {900'000}, none, {500'000}}));
  EXPECT_EQ(marked({}), (std::vector<Nanos>(4)));
}

}  // namespace
}  // namespace etude
