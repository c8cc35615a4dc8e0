#include "src/transform/edit/operator_times.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

struct PlannedOperator {
  std::string name;
  int64_t rows;
  int64_t start;
  int64_t nanos;
  uint64_t parent = 0;
};

// Writes operators with one tensor of rows × 4 each.
Trace TraceOf(const std::vector<PlannedOperator>& operators) {
  TraceBuilder builder;
  const StringId type = builder.Intern("Tensor(float)");
  uint64_t id = 0;
  for (const PlannedOperator& op : operators) {
    NodeRow row;
    row.source_id = ++id;
    if (op.parent != 0) row.parent = op.parent;
    row.kind = NodeKind::kOperator;
    row.place = Place::kHost;
    row.name = builder.Intern(op.name);
    row.op_schema = builder.Intern(op.name + "(Tensor self) -> Tensor");
    row.lane = builder.InternLane({.thread = builder.Intern("1")});
    row.start = Nanos{op.start};
    row.duration = Nanos{op.nanos};
    const TensorId tensor =
        builder.InternTensor({.tensor = id,
                              .storage = id,
                              .numel = op.rows * 4,
                              .element_bytes = 4,
                              .type = type,
                              .shape = builder.InternInts(std::vector<int64_t>{op.rows, 4})});
    row.inputs = builder.InternValues(std::vector<Value>{Value::Tensor(type, tensor)});
    builder.AddNode(row);
  }
  return builder.Finish().value();
}

// A product that calls another operator, an operator whose size stays, and one without a row in the
// tables of the tests.
Trace OperatorStepOf(int64_t rows) {
  return TraceOf({{"aten::linear", rows, 0, 100},
                  {"aten::mm", rows, 20, 60, 1},
                  {"aten::relu", 8, 100, 50},
                  {"aten::tanh", rows, 150, 30}});
}

OperatorTable TableOf(const std::map<OperatorKey, double>& times) {
  OperatorTable table;
  for (const auto& [key, time] : times) table.times[key] = {.time_ns = time, .calls = 1};
  return table;
}

int64_t DurationOf(const Trace& trace, uint64_t id) {
  return trace.duration(trace.Find(id))->count;
}

TEST(OperatorTimes, ChangeByTheRatioOfMeasuredTimes) {
  const Trace recorded = OperatorStepOf(2);
  const Trace edited = OperatorStepOf(6);
  const OperatorTable table = TableOf({{{"aten::linear", "float32[2,4]"}, 40},
                                       {{"aten::linear", "float32[6,4]"}, 100},
                                       {{"aten::relu", "float32[8,4]"}, 999}});
  const auto timed = WithOperatorTimes(recorded, edited, {false, false, false, true}, false,
                                       {.times = table, .recorded = table}, {});
  ASSERT_TRUE(timed) << timed.error().message;
  EXPECT_EQ(DurationOf(timed->trace, 1), 250);  // 100 · 100 / 40
  EXPECT_EQ(DurationOf(timed->trace, 2), 150);  // inside of it, in proportion
  EXPECT_EQ(DurationOf(timed->trace, 3), 50);   // has the recorded size
  EXPECT_EQ(DurationOf(timed->trace, 4), 30);
  EXPECT_EQ(timed->trace.start(timed->trace.Find(3))->count, 250);
  EXPECT_EQ(timed->measured, 1u);
  EXPECT_EQ(timed->estimated, 1u);
  EXPECT_EQ(timed->kept, 0u);
  EXPECT_EQ(timed->without_ratio, 0u);
  EXPECT_EQ(timed->missing, (std::map<std::string, uint64_t>{{"aten::tanh", 1}}));
  EXPECT_EQ(timed->wanted_time, Nanos{130});
  EXPECT_EQ(timed->measured_time, Nanos{100});
}

TEST(OperatorTimes, AreThoseOfTheTableWithoutARecordedOne) {
  const OperatorTable table = TableOf({{{"aten::linear", "float32[6,4]"}, 70}});
  const auto timed = WithOperatorTimes(OperatorStepOf(2), OperatorStepOf(6), {}, false,
                                       {.times = table, .recorded = table}, {});
  ASSERT_TRUE(timed) << timed.error().message;
  EXPECT_EQ(DurationOf(timed->trace, 1), 70);
  EXPECT_EQ(timed->without_ratio, 1u);
  EXPECT_EQ(timed->kept, 1u);
}

TEST(OperatorTimes, OfPartsCountIfTheCallerHasNone) {
  const OperatorTable table = TableOf({{{"aten::mm", "float32[2,4]"}, 10},
                                       {{"aten::mm", "float32[6,4]"}, 20},
                                       {{"aten::tanh", "float32[2,4]"}, 1},
                                       {{"aten::tanh", "float32[6,4]"}, 2}});
  const auto timed = WithOperatorTimes(OperatorStepOf(2), OperatorStepOf(6), {}, false,
                                       {.times = table, .recorded = table}, {});
  ASSERT_TRUE(timed) << timed.error().message;
  EXPECT_EQ(DurationOf(timed->trace, 1), 160);
  EXPECT_EQ(DurationOf(timed->trace, 2), 120);
  EXPECT_EQ(DurationOf(timed->trace, 4), 60);
  EXPECT_EQ(timed->measured, 2u);
  EXPECT_TRUE(timed->missing.empty());
}

TEST(OperatorTimes, OfAllOperatorsOfAnotherMachine) {
  const Trace recorded = OperatorStepOf(2);
  const OperatorTable here = TableOf({{{"aten::relu", "float32[8,4]"}, 100}});
  const OperatorTable there = TableOf({{{"aten::relu", "float32[8,4]"}, 20}});
  const auto timed =
      WithOperatorTimes(recorded, recorded, {}, true, {.times = there, .recorded = here}, {});
  ASSERT_TRUE(timed) << timed.error().message;
  EXPECT_EQ(DurationOf(timed->trace, 3), 10);
  EXPECT_EQ(timed->measured, 1u);
  EXPECT_EQ(timed->kept, 2u);
}

TEST(OperatorTimes, NoisyTimesDoNotCount) {
  OperatorTable table = TableOf({{{"aten::linear", "float32[6,4]"}, 70}});
  table.times.begin()->second.noisy = true;
  const auto timed = WithOperatorTimes(OperatorStepOf(2), OperatorStepOf(6), {}, false,
                                       {.times = table, .recorded = table}, {});
  ASSERT_TRUE(timed) << timed.error().message;
  EXPECT_EQ(DurationOf(timed->trace, 1), 100);
  EXPECT_EQ(timed->measured, 0u);
}

TEST(OperatorTimes, NeedTheKeysOfBothTraces) {
  const std::set<OperatorKey> keys = ChangedOperators(OperatorStepOf(2), OperatorStepOf(6));
  EXPECT_EQ(keys.size(), 6u);
  EXPECT_TRUE(keys.contains({"aten::mm", "float32[2,4]"}));
  EXPECT_TRUE(keys.contains({"aten::tanh", "float32[6,4]"}));
}

}  // namespace
}  // namespace etude
