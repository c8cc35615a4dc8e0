#include "src/analysis/compare/step_kinds.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

class StepKindsTest : public testing::Test {
 protected:
  void Mark(std::optional<int64_t> nanos) {
    NodeRow row{.name = builder_.Intern("ProfilerStep#" + std::to_string(id_))};
    if (nanos) row.duration = Nanos{*nanos};
    Add(row);
  }
  void Operator(const std::string& name, int64_t size) {
    const StringId type = builder_.Intern("Tensor(float)");
    // Addresses differ from step to step and are ignored.
    const TensorId tensor = builder_.InternTensor({.tensor = 100 + id_,
                                                   .storage = 200 + id_,
                                                   .numel = size,
                                                   .element_bytes = 4,
                                                   .type = type,
                                                   .shape = builder_.InternInts({&size, 1})});
    const Value input = Value::Tensor(type, tensor);
    Add({.name = builder_.Intern(name),
         .inputs = builder_.InternValues({&input, 1}),
         .op_schema = builder_.Intern(name + "(Tensor a) -> Tensor")});
  }
  void Damage() { builder_.stats().Count(Stat::kMalformedElement); }
  void Lose(uint64_t nodes) { id_ += nodes; }
  void CutOff() { builder_.stats().Count(Stat::kTruncated); }
  std::vector<StepKind> Find() {
    trace_.emplace(builder_.Finish().value());
    return FindStepKinds(*trace_);
  }

 private:
  void Add(NodeRow row) {
    row.source_id = ++id_;
    row.kind = NodeKind::kCompute;
    row.place = Place::kHost;
    builder_.AddNode(row);
  }

  TraceBuilder builder_;
  uint64_t id_ = 0;
  std::optional<Trace> trace_;
};

TEST_F(StepKindsTest, AreToldBySizesAndOperators) {
  for (const auto& [size, nanos] : {std::pair{8, 30}, {9, 50}, {8, 10}, {8, 20}}) {
    Mark(nanos);
    Operator("aten::relu", size);
  }
  Mark(5);
  Operator("aten::neg", 8);
  const auto kinds = Find();
  ASSERT_EQ(kinds.size(), 3u);
  EXPECT_EQ(kinds[0].steps, (std::vector<size_t>{0, 2, 3}));
  EXPECT_EQ(kinds[0].typical, 3u);  // 20 of 10, 20, 30
  EXPECT_EQ(kinds[0].time, Nanos{60});
  EXPECT_EQ(kinds[1].steps, std::vector<size_t>{1});
  EXPECT_EQ(kinds[2].steps, std::vector<size_t>{4});
}

TEST_F(StepKindsTest, StandForStepsOfTheProgram) {
  for (const auto& [size, nanos] : {std::pair{8, 10}, {9, 40}, {8, 30}}) {
    Mark(nanos);
    Operator("aten::relu", size);
  }
  auto kinds = Find();
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(KindTimeShares(kinds), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(&MiddleKind(kinds), &kinds[0]);
  WeighKinds(std::vector<double>{0.5, 3, 0.5}, kinds);
  EXPECT_EQ(kinds[0].weight, 1);
  EXPECT_EQ(kinds[1].weight, 3);
  EXPECT_EQ(&MiddleKind(kinds), &kinds[1]);
  EXPECT_DOUBLE_EQ(KindTimeShares(kinds)[1], 120 / 140.0);
  // Weights of another recording.
  WeighKinds(std::vector<double>{1}, kinds);
  EXPECT_EQ(kinds[1].weight, 3);
  WeighKinds(std::vector<double>{0, 0, 0}, kinds);
  EXPECT_EQ(kinds[1].weight, 3);
}

TEST_F(StepKindsTest, WithoutMarksThereIsOne) {
  Operator("aten::relu", 8);
  Operator("aten::relu", 9);
  const auto kinds = Find();
  ASSERT_EQ(kinds.size(), 1u);
  EXPECT_EQ(kinds[0].steps, std::vector<size_t>{0});
}

TEST_F(StepKindsTest, AMissingTimeLeavesTheTimeUnknown) {
  Mark(10);
  Operator("aten::relu", 8);
  Mark(std::nullopt);
  Operator("aten::relu", 8);
  const auto kinds = Find();
  ASSERT_EQ(kinds.size(), 1u);
  EXPECT_EQ(kinds[0].time, std::nullopt);
  EXPECT_EQ(kinds[0].typical, 0u);
}

// An incomplete step at the end must not count as a kind of its own.
TEST_F(StepKindsTest, AMarkBehindWhichNothingComesIsNone) {
  Mark({});
  Operator("aten::relu", 8);
  Mark({});
  const std::vector<StepKind> kinds = Find();
  ASSERT_EQ(kinds.size(), 1U);
  EXPECT_EQ(kinds[0].steps, std::vector<size_t>{0});
}

TEST_F(StepKindsTest, MarksAloneStay) {
  Mark({});
  Mark({});
  ASSERT_EQ(Find().size(), 1U);
}

TEST_F(StepKindsTest, AStepThatWasCutOffIsNone) {
  Mark(10);
  Operator("aten::relu", 8);
  Operator("aten::neg", 8);
  Mark(std::nullopt);
  Operator("aten::relu", 8);
  CutOff();
  const auto kinds = Find();
  ASSERT_EQ(kinds.size(), 1u);
  EXPECT_EQ(kinds[0].steps, std::vector<size_t>{0});
  EXPECT_EQ(kinds[0].time, Nanos{10});
}

// Of three steps the second lost a node of another thread, the third and fourth the mark between
// them; the fifth is complete. A complete step counts even if its ids begin after a gap.
TEST_F(StepKindsTest, StepsThatLostNodesAreNone) {
  for (const uint64_t lost : {0U, 1U, 3U, 0U}) {
    Mark(lost == 3 ? std::nullopt : std::optional<int64_t>(10));
    Operator("aten::relu", 8);
    Lose(lost);
    Operator(lost == 3 ? "aten::neg" : "aten::abs", 8);
  }
  Damage();
  const auto kinds = Find();
  ASSERT_EQ(kinds.size(), 1u);
  EXPECT_EQ(kinds[0].steps, (std::vector<size_t>{0, 3}));
  EXPECT_EQ(kinds[0].time, Nanos{20});
}

// Some tools skip numbers.
TEST_F(StepKindsTest, MissingNumbersOfAFileThatIsNotDamagedSayNothing) {
  Mark(10);
  Lose(5);
  Operator("aten::relu", 8);
  EXPECT_EQ(Find()[0].time, Nanos{10});
}

TEST_F(StepKindsTest, TheOnlyStepStaysThoughItWasCutOff) {
  Mark(std::nullopt);
  Operator("aten::relu", 8);
  CutOff();
  EXPECT_EQ(Find().size(), 1u);
}

}  // namespace
}  // namespace etude
