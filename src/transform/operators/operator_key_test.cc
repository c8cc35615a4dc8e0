#include "src/transform/operators/operator_key.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

class OperatorKeyTest : public testing::Test {
 protected:
  Value TensorOf(const std::string& type, const std::vector<int64_t>& shape,
                 const std::vector<int64_t>& strides) {
    ++memory_;
    const TensorUse use{.tensor = memory_,
                        .storage = memory_,
                        .element_bytes = 4,
                        .type = builder_.Intern(type),
                        .shape = builder_.InternInts(shape),
                        .strides = builder_.InternInts(strides)};
    return Value::Tensor(use.type, builder_.InternTensor(use));
  }
  Value ListOf(const std::vector<Value>& values) {
    return Value::List(builder_.Intern("List"), builder_.InternValues(values));
  }

  std::optional<OperatorKey> KeyWith(const std::vector<Value>& inputs,
                                     const std::string& schema = "aten::f.x(Tensor a) -> Tensor") {
    NodeRow row;
    row.source_id = 1;
    row.kind = NodeKind::kOperator;
    row.place = Place::kHost;
    row.name = builder_.Intern("aten::f");
    row.op_schema = builder_.Intern(schema);
    row.inputs = builder_.InternValues(inputs);
    builder_.AddNode(row);
    const Trace trace = builder_.Finish().value();
    return KeyOf(trace, trace.Find(1));
  }

  TraceBuilder builder_;
  uint64_t memory_ = 0;
};

TEST_F(OperatorKeyTest, HasSizesTypesAndArguments) {
  const auto key = KeyWith(
      {TensorOf("Tensor(float)", {2, 3}, {3, 1}), TensorOf("Tensor(long int)", {3, 2}, {1, 3}),
       TensorOf("Tensor(float)", {1, 4}, {77, 1}), ListOf({Value::Int({}, 1), Value::None({})}),
       Value::Double({}, 1), Value::Double({}, 0.1), Value::Bool({}, true),
       Value::Text(ValueKind::kString, {}, builder_.Intern("none"))});
  ASSERT_TRUE(key);
  EXPECT_EQ(key->name, "aten::f.x");
  EXPECT_EQ(key->arguments,
            "float32[2,3],int64[3,2]:1:3,float32[1,4],[1,None],1.0,0.1,True,'none'");
}

TEST_F(OperatorKeyTest, IsUnknownWithoutSizes) {
  const StringId type = builder_.Intern("Tensor(float)");
  const TensorUse use{.tensor = 1, .storage = 1, .element_bytes = 4, .type = type};
  EXPECT_FALSE(KeyWith({Value::Tensor(type, builder_.InternTensor(use))}));
}

TEST_F(OperatorKeyTest, IsOfOperatorsOnly) { EXPECT_FALSE(KeyWith({}, "")); }

}  // namespace
}  // namespace etude
