#include "src/analysis/data_flow.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/analysis/recorded_step.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

constexpr uint64_t kAddress = 4096;

class DataFlowOfNumbersTest : public testing::Test {
 protected:
  // The Python number 1e-6 as a tensor, and a result, both at one address.
  Value Number() {
    return Tensor({.numel = 1, .element_bytes = 8, .number_kind = ValueKind::kDouble, .number = 42},
                  "Tensor(double)");
  }
  Value Result() { return Tensor({.numel = 1, .element_bytes = 4}, "Tensor(float)"); }

  void Op(uint64_t id, uint64_t parent, const std::vector<Value>& inputs,
          const std::vector<Value>& outputs) {
    NodeRow row{.source_id = id, .kind = NodeKind::kOperator, .place = Place::kHost};
    row.name = builder_.Intern("aten::add");
    row.op_schema = builder_.Intern("aten::add.Tensor(Tensor self, Tensor other) -> Tensor");
    if (parent != 0) row.parent = parent;
    row.inputs = builder_.InternValues(inputs);
    row.outputs = builder_.InternValues(outputs);
    builder_.AddNode(row);
  }

  TraceBuilder builder_;

 private:
  Value Tensor(TensorUse use, std::string_view type) {
    use.tensor = use.storage = kAddress;
    use.type = builder_.Intern(type);
    use.shape = builder_.InternInts(std::span<const int64_t>());
    return Value::Tensor(use.type, builder_.InternTensor(use));
  }
};

// The number of a later call was taken for the result: "a view of 8 bytes on memory of 4".
TEST_F(DataFlowOfNumbersTest, AResultDoesNotLieInANumberThatACalleeWasGiven) {
  Op(2, 0, {}, {Result()});
  Op(3, 2, {Number()}, {});
  Op(4, 0, {Number()}, {});
  const Trace trace = builder_.Finish().value();
  const RecordedStep step = RecordedStep::Select(trace, "").value();
  const DataFlow flow(step);
  const StorageVersion result = flow.outputs(trace.Find(2))[0].version;
  EXPECT_NE(result, flow.inputs(trace.Find(3))[0].version);
  EXPECT_NE(result, flow.inputs(trace.Find(4))[0].version);
}

}  // namespace
}  // namespace etude
