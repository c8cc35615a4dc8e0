#include "src/compose/resize.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/compose/retype.h"
#include "src/trace/trace_builder.h"
#include "src/transform/edit/rewrite.h"

namespace etude {
namespace {

TEST(CountAt, FollowsTheRulesOfSizes) {
  const Resizing sizes{.first = 8, .second = 16, .wanted = 64};
  EXPECT_EQ(CountAt(sizes, 512, 512), 512);  // independent of the size
  EXPECT_EQ(CountAt(sizes, 8, 16), 64);      // the size itself
  EXPECT_EQ(CountAt(sizes, 8 * 12, 16 * 12), 64 * 12);
  EXPECT_EQ(CountAt(sizes, 64, 256), 64 * 64);  // its square
  EXPECT_EQ(CountAt(sizes, 9, 17), 65);         // one more than the size
  EXPECT_EQ(CountAt(sizes, -8, -16), -64);
  EXPECT_EQ(CountAt({.first = 8, .second = 16, .wanted = 12}, 1, 2), std::nullopt);
  EXPECT_EQ(CountAt({.first = 8, .second = 16, .wanted = 4}, 10, 20), 5);
  EXPECT_EQ(CountAt({.first = 8, .second = 16, .wanted = 1}, 3, 40), std::nullopt);  // below 0
  EXPECT_EQ(
      CountAt({.first = 1, .second = 2, .wanted = 1 << 30}, int64_t{1} << 40, int64_t{1} << 41),
      std::nullopt);  // beyond 63 bits
}

TEST(NumberAt, FollowsSizesAndTheirInverse) {
  const Resizing sizes{.first = 8, .second = 16, .wanted = 64};
  EXPECT_EQ(NumberAt(sizes, 0.5, 0.5), 0.5);
  EXPECT_EQ(NumberAt(sizes, 80.0, 160.0), 640.0);
  EXPECT_EQ(NumberAt(sizes, 1.0 / 8, 1.0 / 16), 1.0 / 64);
  EXPECT_EQ(NumberAt(sizes, 0.1, 0.7), std::nullopt);
}

// relu of a tensor of `batch` rows, transposed or not, and a mean that divides by the batch.
Trace Recorded(int64_t batch, bool transposed = false, const std::string& second = "aten::div") {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kLinked);
  const StringId type = builder.Intern("Tensor(float)");
  const auto tensor = [&](uint64_t address) {
    const std::vector<int64_t> shape =
        transposed ? std::vector<int64_t>{4, batch} : std::vector<int64_t>{batch, 4};
    const std::vector<int64_t> strides =
        transposed ? std::vector<int64_t>{1, 4} : std::vector<int64_t>{4, 1};
    return Value::Tensor(type, builder.InternTensor({.tensor = address,
                                                     .storage = address,
                                                     .numel = 4 * batch,
                                                     .element_bytes = 4,
                                                     .type = type,
                                                     .shape = builder.InternInts(shape),
                                                     .strides = builder.InternInts(strides),
                                                     .storage_bytes = 16 * batch}));
  };
  const auto add = [&](uint64_t id, const std::string& name, std::vector<Value> inputs,
                       int64_t start, int64_t duration) {
    builder.AddNode({.source_id = id,
                     .kind = NodeKind::kOperator,
                     .place = Place::kHost,
                     .name = builder.Intern(name),
                     .start = Nanos{start},
                     .duration = Nanos{duration},
                     .inputs = builder.InternValues(inputs),
                     .outputs = builder.InternValues(std::vector<Value>{tensor(id)}),
                     .op_schema = builder.Intern(
                         name + "(Tensor self, Scalar other, ScalarType? dtype=None) -> Tensor")});
  };
  add(1, "aten::relu", {tensor(7)}, 100, 10 * batch);
  add(2, second,
      {tensor(1), Value::Double(builder.Intern("Double"), 1.0 / static_cast<double>(batch)),
       Value::Int(builder.Intern("Int"), 6)},
      100 + 10 * batch + 50, 20);
  return builder.Finish().value();
}

// Returns the contents of a trace, independent of its tables.
std::string Text(const Trace& trace) {
  std::string text;
  ForEachNode(trace, [&](NodeId node) {
    text += fmt::format("{} {} at {} for {}:", trace.source_id(node), trace.name(node),
                        trace.start(node)->count, trace.duration(node)->count);
    for (const auto values : {trace.inputs(node), trace.outputs(node)}) {
      for (const Value& value : values) {
        if (value.kind != ValueKind::kTensor) {
          text += fmt::format(" {:x}", value.payload);
          continue;
        }
        const TensorUse& use = trace.tensor(value.as_tensor());
        text += fmt::format(" {}: {} by {}, {} of {} bytes", use.storage, trace.ints(use.shape),
                            trace.ints(use.strides), use.numel, use.storage_bytes);
      }
    }
    text += '\n';
  });
  return text;
}

TEST(Resize, GivesWhatWouldHaveBeenRecorded) {
  for (const bool transposed : {false, true}) {
    const auto resized = ResizeTrace(Recorded(8, transposed), Recorded(16, transposed),
                                     {.first = 8, .second = 16, .wanted = 40}, {});
    ASSERT_TRUE(resized) << resized.error().message;
    EXPECT_EQ(resized->changed, 2);
    EXPECT_EQ(resized->kept, 0);
    EXPECT_EQ(Text(resized->trace), Text(Recorded(40, transposed)));
  }
}

TEST(Resize, RefusesRecordingsThatDidSomethingElse) {
  const Resizing sizes{.first = 8, .second = 16, .wanted = 40};
  const auto other = ResizeTrace(Recorded(8), Recorded(16, false, "aten::mul"), sizes, {});
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("node 2 'aten::div' is 'aten::mul'"), std::string::npos);
  // The given sizes are not those of the recordings.
  const auto wrong =
      ResizeTrace(Recorded(8), Recorded(16), {.first = 3, .second = 6, .wanted = 5}, {});
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("node 1 'aten::relu': a size: 8 for size 3"),
            std::string::npos);
}

TEST(Resize, TimesAreNeverNegative) {
  const auto smaller =
      ResizeTrace(Recorded(16), Recorded(8), {.first = 16, .second = 8, .wanted = 1}, {});
  ASSERT_TRUE(smaller) << smaller.error().message;
  EXPECT_EQ(smaller->trace.duration(smaller->trace.Find(1)), Nanos{10});
  EXPECT_EQ(smaller->trace.start(smaller->trace.Find(2)), Nanos{160});
}

TEST(Resize, NoTimesWhereTheLargerSizeTookLess) {
  // Tensors of 8 and 16 rows that took as long as those of 16 and 8.
  const auto swapped = [](int64_t batch, int64_t time) {
    return RewriteTrace(Recorded(batch), {},
                        [&](RewrittenNode& node, TraceBuilder&) {
                          node.row.duration = Nanos{time};
                          return Status();
                        })
        .value();
  };
  const auto resized =
      ResizeTrace(swapped(8, 300), swapped(16, 100), {.first = 8, .second = 16, .wanted = 40}, {});
  ASSERT_TRUE(resized) << resized.error().message;
  EXPECT_EQ(resized->trace.duration(resized->trace.Find(1)), std::nullopt);
  EXPECT_EQ(resized->trace.start(resized->trace.Find(2)), std::nullopt);
}

TEST(Retype, ChangesTensorsAndArgumentsThatNameTheType) {
  const auto retyped = RetypeTrace(Recorded(8), DType::kFloat32, DType::kBFloat16, {});
  ASSERT_TRUE(retyped);
  const Trace& trace = retyped->trace;
  EXPECT_EQ(retyped->changed, 2);
  const NodeId last = trace.Find(2);
  const TensorUse& use = trace.tensor(trace.inputs(last)[0].as_tensor());
  EXPECT_EQ(trace.text(use.type), "Tensor(c10::BFloat16)");
  EXPECT_EQ(use.element_bytes, 2);
  EXPECT_EQ(use.storage_bytes, 64);
  EXPECT_EQ(trace.inputs(last)[2].as_int(), 15);  // c10's number of bfloat16
  EXPECT_EQ(trace.duration(last), std::nullopt);
  EXPECT_EQ(trace.start(last), Nanos{230});
  const auto none = RetypeTrace(Recorded(8), DType::kFloat64, DType::kFloat32, {});
  EXPECT_EQ(none->changed, 0);
  EXPECT_EQ(Text(none->trace), Text(Recorded(8)));
}

// Returns the element size of each tensor after the change, arguments first.
std::vector<int64_t> ElementsOfRetyped(DType from, DType to, int64_t sums) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kLinked);
  const auto tensor = [&](uint64_t address, std::string_view name, int64_t bytes) {
    const StringId type = builder.Intern(fmt::format("Tensor({})", name));
    return Value::Tensor(type, builder.InternTensor({.tensor = address,
                                                     .storage = address,
                                                     .numel = 2,
                                                     .element_bytes = bytes,
                                                     .type = type}));
  };
  const auto value = [&](uint64_t address) {
    return tensor(address, TypeText(from), *ElementBytes(from));
  };
  const auto sum = [&](uint64_t address) {
    return tensor(address, sums == 8 ? "double" : "float", sums);
  };
  const auto add = [&](uint64_t id, std::vector<Value> inputs, std::vector<Value> outputs,
                       std::string_view schema) {
    builder.AddNode({.source_id = id,
                     .kind = NodeKind::kOperator,
                     .place = Place::kHost,
                     .name = builder.Intern("aten::attention"),
                     .inputs = builder.InternValues(inputs),
                     .outputs = builder.InternValues(outputs),
                     .op_schema = builder.Intern(schema)});
  };
  add(1, {value(1)}, {value(2), sum(3)},
      "aten::attention(Tensor query) -> (Tensor output, Tensor logsumexp)");
  add(2, {value(2), sum(3)}, {value(4)},
      "aten::attention_backward(Tensor out, Tensor logsumexp) -> Tensor");
  const auto retyped = RetypeTrace(builder.Finish().value(), from, to, {});
  std::vector<int64_t> bytes;
  for (const uint64_t id : {uint64_t{1}, uint64_t{2}}) {
    const NodeId node = retyped->trace.Find(id);
    for (const auto values : {retyped->trace.inputs(node), retyped->trace.outputs(node)}) {
      for (const Value& one : values) {
        bytes.push_back(retyped->trace.tensor(one.as_tensor()).element_bytes);
      }
    }
  }
  return bytes;
}

TEST(Retype, CallersAndDeviceWorkOfWhatChangedHaveNoTimes) {
  TraceBuilder builder;
  const auto add = [&](uint64_t id, NodeKind kind, Place place, std::optional<uint64_t> parent,
                       std::string_view type) {
    const StringId name = builder.Intern(type);
    const TensorUse use{
        .numel = 1, .type = name, .shape = builder.InternInts(std::vector<int64_t>{1})};
    builder.AddNode({.source_id = id,
                     .kind = kind,
                     .place = place,
                     .parent = parent,
                     .start = Nanos{100},
                     .duration = Nanos{10},
                     .inputs = type.empty() ? ValueListId()
                                            : builder.InternValues(std::vector<Value>{Value::Tensor(
                                                  name, builder.InternTensor(use))})});
  };
  add(1, NodeKind::kLabel, Place::kHost, std::nullopt, "");
  add(2, NodeKind::kOperator, Place::kHost, 1, "Tensor(float)");
  add(3, NodeKind::kRuntime, Place::kHost, 2, "");
  add(4, NodeKind::kKernel, Place::kDevice, 3, "");
  add(5, NodeKind::kKernel, Place::kDevice, 2, "");
  add(6, NodeKind::kOperator, Place::kHost, 1, "Tensor(long int)");
  add(7, NodeKind::kKernel, Place::kDevice, 6, "");
  add(8, NodeKind::kLabel, Place::kHost, std::nullopt, "");
  const Trace trace = builder.Finish().value();
  const auto retyped = RetypeTrace(trace, DType::kFloat32, DType::kBFloat16, {});
  ASSERT_TRUE(retyped);
  std::vector<uint64_t> timed;
  ForEachNode(retyped->trace, [&](NodeId node) {
    if (retyped->trace.duration(node)) timed.push_back(retyped->trace.source_id(node));
  });
  EXPECT_EQ(timed, (std::vector<uint64_t>{3, 6, 7, 8}));
}

TEST(Retype, SumsOfAttentionHaveTheTypeItAddsIn) {
  using Bytes = std::vector<int64_t>;
  EXPECT_EQ(ElementsOfRetyped(DType::kFloat32, DType::kBFloat16, 4), (Bytes{2, 2, 4, 2, 4, 2}));
  EXPECT_EQ(ElementsOfRetyped(DType::kFloat32, DType::kFloat64, 4), (Bytes{8, 8, 8, 8, 8, 8}));
  EXPECT_EQ(ElementsOfRetyped(DType::kFloat16, DType::kFloat32, 4), (Bytes{4, 4, 4, 4, 4, 4}));
  EXPECT_EQ(ElementsOfRetyped(DType::kFloat16, DType::kFloat64, 4), (Bytes{8, 8, 8, 8, 8, 8}));
  EXPECT_EQ(ElementsOfRetyped(DType::kFloat64, DType::kFloat16, 8), (Bytes{2, 2, 4, 2, 4, 2}));
}

// An operator on a tensor of `batch` rows whose one column was broadcast, and on none.
Trace WithOneColumn(int64_t batch) {
  TraceBuilder builder;
  const StringId type = builder.Intern("Tensor(float)");
  const StringId none = builder.Intern("Tensor(nullptr (uninitialized))");
  const TensorUse rows{.tensor = 1,
                       .storage = 1,
                       .numel = 4 * batch,
                       .element_bytes = 4,
                       .type = type,
                       .shape = builder.InternInts(std::vector<int64_t>{batch, 1, 4}),
                       .strides = builder.InternInts(std::vector<int64_t>{4, 0, 1})};
  const TensorUse undefined{.type = none, .shape = builder.InternInts(std::vector<int64_t>{})};
  builder.AddNode({.source_id = 1,
                   .kind = NodeKind::kOperator,
                   .inputs = builder.InternValues(
                       std::vector<Value>{Value::Tensor(type, builder.InternTensor(rows)),
                                          Value::Tensor(none, builder.InternTensor(undefined))})});
  return std::move(builder.Finish().value());
}

TEST(ResizeTrace, KeepsStridesOfOneElementAndTensorsThatAreNone) {
  const auto resized = ResizeTrace(WithOneColumn(8), WithOneColumn(16), {8, 16, 64}, {});
  ASSERT_TRUE(resized);
  const Trace& trace = resized->trace;
  const auto inputs = trace.inputs(NodeId(0));
  const TensorUse& rows = trace.tensor(inputs[0].as_tensor());
  EXPECT_EQ(rows.numel, 256);
  EXPECT_EQ(fmt::format("{}", trace.ints(rows.strides)), "[4, 0, 1]");
  EXPECT_EQ(trace.tensor(inputs[1].as_tensor()).numel, 0);
}

}  // namespace
}  // namespace etude
