#include "src/analysis/step_kinds.h"

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
    // Addresses differ from step to step and tell nothing.
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

}  // namespace
}  // namespace etude
