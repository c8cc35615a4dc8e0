#include "src/run/waits/communication_waits.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/run/calls/callers.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

constexpr std::string_view kCollective =
    "(Tensor[] tensors, __torch__.torch.classes.c10d.ProcessGroup process_group, bool async_op) "
    "-> (Tensor[], __torch__.torch.classes.c10d.Work)";
constexpr std::string_view kMessage =
    "(Tensor[] tensors, __torch__.torch.classes.c10d.ProcessGroup process_group, int peer) -> "
    "__torch__.torch.classes.c10d.Work";

// A step from 0 to 1000 ns. Memory has one byte and a number.
class CommunicationWaitsTest : public testing::Test {
 protected:
  CommunicationWaitsTest() { Add(Label("ProfilerStep#3", 0, 1000)); }

  NodeId Operator(int64_t start, int64_t duration, uint64_t memory) {
    NodeRow row = Label("aten::neg", start, duration);
    row.kind = NodeKind::kOperator;
    row.op_schema = builder_.Intern("aten::neg(Tensor self) -> Tensor");
    row.inputs = builder_.InternValues(std::vector{Memory(memory)});
    return Add(row);
  }
  void WaitsFor(NodeId node, uint64_t communication) {
    builder_.AddDep(node, communication, DepKind::kSync);
  }
  // Adds a label on the calling thread, called by the communication: native captures have such
  // labels for sends and receives, profilers for all.
  uint64_t Communication(std::string_view name, int64_t start, int64_t duration, uint64_t memory,
                         std::optional<bool> async) {
    NodeRow row = Label("c10d::" + std::string(name), start, duration);
    row.kind = NodeKind::kOperator;
    row.op_schema =
        builder_.Intern("c10d::" + std::string(name) + std::string(async ? kCollective : kMessage));
    const StringId text = builder_.Intern("");
    std::vector<Value> inputs = {Memory(memory), Value::Text(ValueKind::kOpaque, text, text)};
    inputs.push_back(async ? Value::Bool(text, *async) : Value::Int(text, 1));
    row.inputs = builder_.InternValues(inputs);
    Add(row);
    return id_;
  }
  void GlooLabel(std::string_view name, uint64_t caller, int64_t start, int64_t duration) {
    NodeRow row = Label("gloo:" + std::string(name), start, duration);
    row.parent = caller;
    Add(row);
  }
  // Adds a label of a collective on a Gloo thread, as in native captures.
  void GlooThreadLabel(std::string_view name, uint64_t issuer, int64_t start, int64_t duration) {
    const NodeId label = Add(Label("gloo:" + std::string(name), start, duration));
    builder_.AddDep(label, issuer, DepKind::kControl);
  }

  std::vector<CommunicationWait> Find() {
    trace_.emplace(builder_.Finish().value());
    step_.emplace(RecordedStep::Select(*trace_, "").value());
    return FindCommunicationWaits(*step_, DataFlow(*step_), step_->top_operators());
  }
  std::vector<Interval> Times(const std::vector<CommunicationWait>& waits) {
    const TimeSet times = TimesOf(waits, *step_, step_->top_operators());
    return {times.intervals().begin(), times.intervals().end()};
  }

 private:
  NodeRow Label(std::string_view name, int64_t start, int64_t duration) {
    NodeRow row{.source_id = ++id_,
                .kind = NodeKind::kLabel,
                .place = Place::kHost,
                .name = builder_.Intern(name),
                .start = Nanos{start},
                .duration = Nanos{duration}};
    row.parent = 1;
    return row;
  }
  NodeId Add(const NodeRow& row) { return builder_.AddNode(row); }
  Value Memory(uint64_t number) {
    TensorUse use{.numel = 1, .element_bytes = 1};
    use.tensor = use.storage = 4096 * number;
    use.type = builder_.Intern("Tensor(unsigned char)");
    use.shape = builder_.InternInts(std::vector<int64_t>{1});
    return Value::Tensor(use.type, builder_.InternTensor(use));
  }

  TraceBuilder builder_;
  uint64_t id_ = 0;
  std::optional<Trace> trace_;
  std::optional<RecordedStep> step_;
};

TEST_F(CommunicationWaitsTest, CollectivesAreWaitedForAsTheyWereCalled) {
  const uint64_t at_once = Communication("allreduce_", 100, 10, 1, false);  // 0
  GlooThreadLabel("all_reduce", at_once, 110, 70);
  Operator(200, 10, 2);
  const uint64_t later = Communication("allgather_", 210, 10, 3, true);  // 2
  GlooLabel("all_gather", later, 215, 30);
  GlooLabel("all_gather", later, 215, 65);  // the last one counts
  Operator(230, 20, 4);
  Operator(300, 10, 3);                                // uses its memory
  Communication("broadcast_", 400, 10, 5, false);      // 5, without a label
  Communication("reduce_scatter_", 500, 10, 6, true);  // 6, whose memory is not used
  Operator(600, 10, 7);
  const auto waits = Find();
  const std::vector<CommunicationWait> expected = {
      {0, 1, Nanos{180}}, {2, 4, Nanos{280}}, {5, 6, std::nullopt}, {6, 8, std::nullopt}};
  EXPECT_EQ(waits, expected);
  const std::vector<Interval> times = {{Nanos{110}, Nanos{180}},
                                       {Nanos{250}, Nanos{280}},
                                       {Nanos{410}, Nanos{500}},
                                       {Nanos{610}, Nanos{1000}}};
  EXPECT_EQ(Times(waits), times);
}

TEST_F(CommunicationWaitsTest, OlderReleasesSayItInAnotherWay) {
  std::string schema(kCollective);
  schema.replace(schema.find("async_op"), 8, "asyncOp");
  for (const bool async : {false, true}) {
    TraceBuilder builder;
    const StringId text = builder.Intern("");
    const Value opaque = Value::Text(ValueKind::kOpaque, text, text);
    NodeRow row{.source_id = 1, .kind = NodeKind::kOperator, .place = Place::kHost};
    row.name = builder.Intern("c10d::allreduce_");
    row.op_schema = builder.Intern("c10d::allreduce_" + schema);
    row.inputs = builder.InternValues(std::vector{opaque, opaque, Value::Bool(text, async)});
    const NodeId node = builder.AddNode(row);
    EXPECT_EQ(IsSynchronous(builder.Finish().value(), node), !async);
  }
}

TEST_F(CommunicationWaitsTest, AnOperatorMaySayForWhatItWaits) {
  const uint64_t sum = Communication("allreduce_", 100, 10, 1, true);
  Operator(120, 10, 2);
  WaitsFor(Operator(200, 10, 3), sum);
  Operator(220, 10, 1);
  const std::vector<CommunicationWait> expected = {{0, 2, std::nullopt}};
  EXPECT_EQ(Find(), expected);
}

// Without the labels, all sends would seem to be waited for at the end of the step, and recorded
// waits would count as busy time.
TEST_F(CommunicationWaitsTest, MessagesAreWaitedForWhenTheirLabelsEnd) {
  const uint64_t send = Communication("send", 100, 10, 1, std::nullopt);  // 0
  GlooLabel("send", send, 105, 75);                                       // until 180
  Operator(200, 10, 2);
  const uint64_t recv = Communication("recv_", 220, 10, 3, std::nullopt);  // 2
  GlooLabel("recv", recv, 225, 60);                                        // until 285
  Operator(290, 10, 4);                                                    // other memory
  Operator(310, 10, 3);
  const auto waits = Find();
  const std::vector<CommunicationWait> expected = {{0, 1, Nanos{180}}, {2, 3, Nanos{285}}};
  EXPECT_EQ(waits, expected);
  const std::vector<Interval> times = {{Nanos{110}, Nanos{180}}, {Nanos{230}, Nanos{285}}};
  EXPECT_EQ(Times(waits), times);
}

// isend and irecv, then wait for both.
TEST_F(CommunicationWaitsTest, MessagesMayBeBegunTogether) {
  const uint64_t send = Communication("send", 100, 10, 1, std::nullopt);   // 0
  const uint64_t recv = Communication("recv_", 120, 10, 2, std::nullopt);  // 1
  GlooLabel("send", send, 105, 75);                                        // until 180
  GlooLabel("recv", recv, 125, 65);                                        // until 190
  Operator(200, 10, 3);
  Communication("send", 220, 10, 4, std::nullopt);  // 3, without a label
  Operator(240, 10, 4);
  const auto waits = Find();
  const std::vector<CommunicationWait> expected = {
      {0, 2, Nanos{180}}, {1, 2, Nanos{190}}, {3, 4, std::nullopt}};
  EXPECT_EQ(waits, expected);
  const std::vector<Interval> times = {{Nanos{130}, Nanos{190}}, {Nanos{230}, Nanos{240}}};
  EXPECT_EQ(Times(waits), times);
}

// isend, work that reads the sent data, recv, then wait for the first: a wait for the send before
// that work would deadlock with the other rank, which begins its receive after its own send.
TEST_F(CommunicationWaitsTest, WhatIsBeingSentMayBeRead) {
  const uint64_t send = Communication("send", 100, 10, 1, std::nullopt);  // 0
  Operator(120, 10, 1);
  const uint64_t recv = Communication("recv_", 140, 10, 2, std::nullopt);  // 2
  GlooLabel("send", send, 105, 75);                                        // until 180
  GlooLabel("recv", recv, 145, 65);                                        // until 210
  Operator(250, 10, 2);
  const std::vector<CommunicationWait> expected = {{0, 3, Nanos{180}}, {2, 3, Nanos{210}}};
  EXPECT_EQ(Find(), expected);
}

}  // namespace
}  // namespace etude
