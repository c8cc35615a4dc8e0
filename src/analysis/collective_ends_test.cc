#include "src/analysis/collective_ends.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

class CollectiveEndsTest : public testing::Test {
 protected:
  NodeId Add(uint64_t id, std::string_view name, uint64_t parent, int64_t start, int64_t duration) {
    NodeRow row{.source_id = id,
                .kind = NodeKind::kLabel,
                .place = Place::kHost,
                .name = builder_.Intern(name),
                .parent = parent,
                .start = Nanos{start},
                .duration = Nanos{duration}};
    if (name.starts_with("c10d::")) {
      row.kind = NodeKind::kOperator;
      row.op_schema = builder_.Intern(std::string(name) + "() -> ()");
    }
    return builder_.AddNode(row);
  }

  TraceBuilder builder_;
};

TEST_F(CollectiveEndsTest, AreThoseOfTheirLabels) {
  Add(1, "step", 1, 0, 1000);
  Add(2, "c10d::allreduce_", 1, 100, 10);
  // Native captures: on a thread of Gloo's, with a dependency on the operator.
  const NodeId label = Add(3, "gloo:all_reduce", 1, 110, 90);
  builder_.AddDep(label, uint64_t{2}, DepKind::kControl);
  // Profilers: the label lies in the operator; the one that ends last counts.
  Add(4, "c10d::allgather_", 1, 300, 200);
  Add(5, "gloo:all_gather", 4, 310, 50);
  Add(6, "gloo:all_gather", 4, 320, 150);
  // A label whose operator is not told, and a collective without one.
  Add(7, "c10d::broadcast_", 1, 600, 10);
  Add(8, "gloo:broadcast", 1, 620, 30);
  const auto trace = std::move(builder_).Finish();
  ASSERT_TRUE(trace) << trace.error().message;
  const auto step = RecordedStep::Select(*trace, "");
  ASSERT_TRUE(step) << step.error().message;
  const std::vector<NodeId> collectives = {trace->Find(2), trace->Find(4), trace->Find(7)};
  const auto ends = CollectiveEnds(*step, collectives);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends.at(trace->Find(2)), Nanos{200});
  EXPECT_EQ(ends.at(trace->Find(4)), Nanos{470});
}

}  // namespace
}  // namespace etude
