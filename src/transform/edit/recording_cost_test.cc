#include "src/transform/edit/recording_cost.h"

#include <gtest/gtest.h>

#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

class RecordingCost : public testing::Test {
 protected:
  void Add(Nanos start, Nanos duration, Place place = Place::kHost) {
    builder_.AddNode({.source_id = ++id_,
                      .kind = place == Place::kHost ? NodeKind::kOperator : NodeKind::kKernel,
                      .place = place,
                      .name = builder_.Intern("node"),
                      .start = start,
                      .duration = duration});
  }
  Trace Finish() { return builder_.Finish().value(); }

 private:
  TraceBuilder builder_;
  uint64_t id_ = 0;
};

// A large and a small operator with a wait of 10 between them lose the same.
TEST_F(RecordingCost, IsTheSameForEachOperator) {
  Add(Nanos{0}, Nanos{1'000});
  Add(Nanos{1'010}, Nanos{100});
  const Trace trace = Finish();
  const std::vector<Interval> steps = {{Nanos{0}, Nanos{1'110}}};
  const auto without = TakeOutRecordingCost(trace, steps, Nanos{1'095}, {}).value();
  ASSERT_TRUE(without.has_value());
  EXPECT_EQ(without->events, 2U);
  EXPECT_EQ(without->taken, Nanos{15});
  // Three stretches lose half of it each.
  EXPECT_EQ(without->per_event, Nanos{10});
  EXPECT_EQ(without->trace.duration(NodeId(0)), Nanos{995});
  EXPECT_EQ(without->trace.start(NodeId(1)), Nanos{1'000});
  EXPECT_EQ(without->trace.duration(NodeId(1)), Nanos{95});
}

// The stretch between them is too short: the operators lose the rest.
TEST_F(RecordingCost, LeavesATenthOfEachStretch) {
  Add(Nanos{0}, Nanos{1'000});
  Add(Nanos{1'010}, Nanos{1'000});
  const Trace trace = Finish();
  const std::vector<Interval> steps = {{Nanos{0}, Nanos{2'010}}};
  const auto without = TakeOutRecordingCost(trace, steps, Nanos{1'401}, {}).value();
  ASSERT_TRUE(without.has_value());
  EXPECT_EQ(without->trace.duration(NodeId(0)), Nanos{700});
  EXPECT_EQ(without->trace.start(NodeId(1)), Nanos{701});
  EXPECT_EQ(without->trace.duration(NodeId(1)), Nanos{700});
}

TEST_F(RecordingCost, IsLeftWhereThereIsNone) {
  Add(Nanos{0}, Nanos{100});
  const Trace trace = Finish();
  const std::vector<Interval> steps = {{Nanos{0}, Nanos{100}}};
  EXPECT_FALSE(TakeOutRecordingCost(trace, steps, Nanos{100}, {}).value().has_value());
  EXPECT_FALSE(TakeOutRecordingCost(trace, steps, Nanos{120}, {}).value().has_value());
  EXPECT_FALSE(TakeOutRecordingCost(trace, {}, Nanos{50}, {}).value().has_value());
}

TEST_F(RecordingCost, LeavesWhatADeviceWorks) {
  Add(Nanos{0}, Nanos{100});
  Add(Nanos{10}, Nanos{500}, Place::kDevice);
  const Trace trace = Finish();
  const std::vector<Interval> steps = {{Nanos{0}, Nanos{600}}};
  EXPECT_FALSE(TakeOutRecordingCost(trace, steps, Nanos{300}, {}).value().has_value());
}

}  // namespace
}  // namespace etude
