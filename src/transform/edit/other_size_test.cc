#include "src/transform/edit/other_size.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

struct Operator {
  std::string name;
  std::vector<std::vector<int64_t>> inputs;
  std::vector<int64_t> output;
  int64_t nanos = 0;
};

// Writes a recording of operators on one thread, 10 ns apart.
Trace Recorded(const std::vector<Operator>& operators) {
  TraceBuilder builder;
  const StringId type = builder.Intern("Tensor(float)");
  uint64_t memory = 0;
  const auto tensor = [&](const std::vector<int64_t>& shape) {
    int64_t numel = 1;
    for (const int64_t size : shape) numel *= size;
    ++memory;
    return Value::Tensor(type, builder.InternTensor({.tensor = memory,
                                                     .storage = memory,
                                                     .numel = numel,
                                                     .element_bytes = 4,
                                                     .type = type,
                                                     .shape = builder.InternInts(shape)}));
  };
  Nanos now;
  uint64_t id = 0;
  for (const Operator& op : operators) {
    NodeRow row;
    row.source_id = ++id;
    row.kind = NodeKind::kOperator;
    row.place = Place::kHost;
    row.name = builder.Intern(op.name);
    row.lane = builder.InternLane({.thread = builder.Intern("1")});
    row.start = now;
    row.duration = Nanos{op.nanos};
    std::vector<Value> inputs;
    for (const auto& shape : op.inputs) inputs.push_back(tensor(shape));
    row.inputs = builder.InternValues(inputs);
    row.outputs = builder.InternValues(std::vector<Value>{tensor(op.output)});
    builder.AddNode(row);
    now = now + Nanos{op.nanos + 10};
  }
  return builder.Finish().value();
}

std::vector<int64_t> ShapeOfResult(const Trace& trace, uint64_t id) {
  const auto outputs = trace.outputs(trace.Find(id));
  const auto sizes = trace.ints(trace.tensor(outputs.front().as_tensor()).shape);
  return {sizes.begin(), sizes.end()};
}

// A step with a square matrix product, whose time is quadratic in the width, and one whose shapes
// do not depend on it.
Trace StepOf(int64_t width) {
  return Recorded({{"aten::mm", {{8, width}, {width, width}}, {8, width}, 100 + width * width},
                   {"aten::relu", {{8, width}}, {8, width}, 50 + width},
                   {"aten::sum", {{16}}, {1}, 70}});
}

TEST(OtherSize, TimesFollowFromTheWorkOfOperators) {
  for (const int64_t wanted : {2, 6, 20}) {
    const auto edited =
        AtOtherSize(StepOf(4), StepOf(10), {4, 10, static_cast<double>(wanted)}, {});
    ASSERT_TRUE(edited) << edited.error().message;
    const Trace expected = StepOf(wanted);
    for (const uint64_t id : {1U, 2U, 3U}) {
      EXPECT_EQ(ShapeOfResult(edited->trace, id), ShapeOfResult(expected, id));
      EXPECT_EQ(edited->trace.duration(edited->trace.Find(id)),
                expected.duration(expected.Find(id)))
          << id << " at " << wanted;
      EXPECT_EQ(edited->trace.start(edited->trace.Find(id)), expected.start(expected.Find(id)));
    }
    EXPECT_EQ(edited->resized, 2u);
    EXPECT_EQ(edited->retimed, 2u);
  }
}

TEST(OtherSize, SizesAreWholeNumbers) {
  const auto edited = AtOtherSize(StepOf(4), StepOf(10), {4, 10, 6.5}, {});
  ASSERT_FALSE(edited);
  EXPECT_EQ(edited.error().message,
            "'aten::mm' (node 1): found sizes 4 and 10, expected such that the wanted one is a "
            "whole number of at least 0");
}

TEST(OtherSize, RecordingsOfOtherProgramsAreRefused) {
  const Trace other =
      Recorded({{"aten::mm", {{8, 4}, {4, 4}}, {8, 4}, 10}, {"aten::tanh", {{8}}, {8}, 1}});
  const auto edited = AtOtherSize(StepOf(4), other, {4, 10, 6}, {});
  ASSERT_FALSE(edited);
  EXPECT_NE(edited.error().message.find("found 'aten::relu' (node 2) in the first recording and "
                                        "'aten::tanh' (node 2)"),
            std::string::npos);
}

}  // namespace
}  // namespace etude
