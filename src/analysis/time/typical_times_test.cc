#include "src/analysis/time/typical_times.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

// Steps of 100 ns in which operators run one after the other.
class TypicalTimesTest : public testing::Test {
 protected:
  struct Call {
    std::string_view name;
    int64_t start;
    int64_t duration;
  };

  void Step(int64_t duration, const std::vector<Call>& calls) {
    const int64_t begin = 1000 * ++steps_;
    Add("ProfilerStep#" + std::to_string(steps_), begin, duration, "");
    const uint64_t mark = id_;
    for (const Call& call : calls) {
      Add(call.name, begin + call.start, call.duration,
          std::string(call.name) + "(Tensor self) -> Tensor", mark);
    }
  }
  TypicalTimes Times(size_t step, const std::vector<size_t>& alike) {
    if (!trace_) trace_.emplace(builder_.Finish().value());
    step_.emplace(RecordedStep::Select(*trace_, "", step).value());
    return {*step_, "", alike};
  }
  static HostGapsOf Around(std::span<const NodeId> operators) {
    return {.operators = operators, .others = {}, .waits = {}};
  }
  std::span<const NodeId> operators() const { return step_->top_operators(); }

 private:
  void Add(std::string_view name, int64_t start, int64_t duration, std::string_view schema,
           std::optional<uint64_t> parent = std::nullopt) {
    NodeRow row{.source_id = ++id_,
                .kind = NodeKind::kCompute,
                .place = Place::kHost,
                .name = builder_.Intern(name),
                .start = Nanos{start},
                .duration = Nanos{duration},
                .op_schema = builder_.Intern(schema)};
    if (parent) row.parent = *parent;
    builder_.AddNode(row);
  }

  TraceBuilder builder_;
  uint64_t id_ = 0;
  int64_t steps_ = 0;
  std::optional<Trace> trace_;
  std::optional<RecordedStep> step_;
};

TEST_F(TypicalTimesTest, OneStepIsItsOwn) {
  Step(100, {{"aten::neg", 10, 20}, {"aten::relu", 40, 30}});
  const TypicalTimes times = Times(0, {0});
  EXPECT_EQ(times.step(), Nanos{100});
  EXPECT_EQ(times.duration(operators()[1]), Nanos{30});
  EXPECT_EQ(times.Gaps(Around(operators()))->before, (std::vector<Nanos>{{10}, {10}}));
}

TEST_F(TypicalTimesTest, AreMediansOverStepsOfTheKind) {
  Step(200, {{"aten::neg", 50, 40}, {"aten::relu", 95, 60}});  // cold
  Step(100, {{"aten::neg", 10, 20}, {"aten::relu", 40, 30}});
  Step(90, {{"aten::neg", 12, 21}, {"aten::relu", 35, 33}});
  const TypicalTimes times = Times(0, {0, 1, 2});
  EXPECT_EQ(times.step(), Nanos{100});
  EXPECT_EQ(times.duration(operators()[0]), Nanos{21});
  EXPECT_EQ(times.duration(operators()[1]), Nanos{33});
  const auto gaps = times.Gaps(Around(operators()));
  // 50, 10 and 12; 5, 10 and 2; 45, 30 and 22.
  EXPECT_EQ(gaps->before, (std::vector<Nanos>{{12}, {5}}));
  EXPECT_EQ(gaps->after, Nanos{30});
}

TEST_F(TypicalTimesTest, GapsCountFromOtherKindsThatRanTheSame) {
  Step(100, {{"aten::neg", 10, 20}});
  Step(100, {{"aten::neg", 30, 50}});
  Step(100, {{"aten::neg", 20, 50}});
  Step(100, {{"aten::relu", 90, 1}});
  const TypicalTimes times = Times(0, {0});
  EXPECT_EQ(times.duration(operators()[0]), Nanos{20});
  EXPECT_EQ(times.Gaps(Around(operators()))->before, (std::vector<Nanos>{{20}}));
}

TEST_F(TypicalTimesTest, NoStepIsAlikeWhereNoneIsNamed) {
  Step(100, {{"aten::neg", 10, 20}});
  Step(300, {{"aten::neg", 30, 50}});
  const TypicalTimes times = Times(1, {});
  EXPECT_EQ(times.step(), Nanos{300});
  EXPECT_EQ(times.duration(operators()[0]), Nanos{50});
  EXPECT_EQ(times.Gaps(Around(operators()))->before, (std::vector<Nanos>{{30}}));
}

}  // namespace
}  // namespace etude
