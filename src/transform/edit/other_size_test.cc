#include "src/transform/edit/other_size.h"

#include <gtest/gtest.h>

#include <functional>
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

// A tensor in its storage: sizes, strides and offset in elements, and bytes of the storage.
struct Strided {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t offset = 0;
  int64_t bytes = 0;
};

// Writes an operator with one tensor.
Trace TraceOf(const Strided& strided) {
  TraceBuilder builder;
  const StringId type = builder.Intern("Tensor(float)");
  int64_t numel = 1;
  for (const int64_t size : strided.sizes) numel *= size;
  NodeRow row;
  row.source_id = 1;
  row.kind = NodeKind::kOperator;
  row.place = Place::kHost;
  row.name = builder.Intern("aten::relu");
  row.lane = builder.InternLane({.thread = builder.Intern("1")});
  row.start = Nanos{};
  row.duration = Nanos{10};
  const TensorId tensor = builder.InternTensor({.tensor = 1,
                                                .storage = 1,
                                                .offset = strided.offset,
                                                .numel = numel,
                                                .element_bytes = 4,
                                                .type = type,
                                                .shape = builder.InternInts(strided.sizes),
                                                .strides = builder.InternInts(strided.strides),
                                                .storage_bytes = strided.bytes});
  row.inputs = builder.InternValues(std::vector<Value>{Value::Tensor(type, tensor)});
  builder.AddNode(row);
  return builder.Finish().value();
}

// Strides, offsets and bytes are products of sizes, of which several may change.
TEST(OtherSize, LayoutsAreThoseOfTheOtherSize) {
  const std::vector<std::function<Strided(int64_t)>> layouts = {
      // Scores of attention in a length, and transposed.
      [](int64_t n) -> Strided {
        return {{2, 3, n, n}, {3 * n * n, n * n, n, 1}, 0, 24 * n * n};
      },
      [](int64_t n) -> Strided {
        return {{2, n, 3, n}, {3 * n * n, 1, n * n, n}, 0, 24 * n * n};
      },
      // The second third of a projection, whose last part is its own storage's end.
      [](int64_t n) -> Strided {
        return {{5, n}, {3 * n, 1}, n, 60 * n};
      },
      // One of the matrices in a storage of four.
      [](int64_t n) -> Strided {
        return {{n, n}, {n, 1}, 3 * n * n, 16 * n * n};
      },
      [](int64_t n) -> Strided {
        return {{n, n}, {n, 1}, 0, 16 * n * n};
      },
      // Expanded.
      [](int64_t n) -> Strided {
        return {{n, n}, {0, 1}, 0, 4 * n};
      },
  };
  for (const auto& layout : layouts) {
    const auto edited = AtOtherSize(TraceOf(layout(8)), TraceOf(layout(16)), {8, 16, 64}, {});
    ASSERT_TRUE(edited) << edited.error().message;
    const Trace& trace = edited->trace;
    const TensorUse& use = trace.tensor(trace.inputs(trace.Find(1)).front().as_tensor());
    const auto sizes = trace.ints(use.shape);
    const auto strides = trace.ints(use.strides);
    const Strided found{.sizes = {sizes.begin(), sizes.end()},
                        .strides = {strides.begin(), strides.end()},
                        .offset = use.offset,
                        .bytes = use.storage_bytes};
    const Strided wanted = layout(64);
    EXPECT_EQ(found.sizes, wanted.sizes);
    EXPECT_EQ(found.strides, wanted.strides);
    EXPECT_EQ(found.offset, wanted.offset) << wanted.strides[0];
    EXPECT_EQ(found.bytes, wanted.bytes) << wanted.strides[0];
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
