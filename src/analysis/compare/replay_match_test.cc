#include "src/analysis/compare/replay_match.h"

#include <gtest/gtest.h>

#include <optional>
#include <string_view>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

// A synthetic step of operators on one float tensor each.
class Made {
 public:
  // Returns its id. Empty strides: not recorded.
  uint64_t Operator(std::string_view name, const std::vector<int64_t>& sizes,
                    const std::vector<int64_t>& strides, int64_t nanos,
                    std::optional<uint64_t> parent = std::nullopt) {
    int64_t numel = 1;
    for (const int64_t size : sizes) numel *= size;
    const StringId type = builder_.Intern("Tensor(float)");
    const TensorId tensor = builder_.InternTensor(
        {.tensor = 7,
         .storage = 8,
         .numel = numel,
         .element_bytes = 4,
         .device = builder_.Intern("cpu"),
         .type = type,
         .shape = builder_.InternInts(sizes),
         .strides = strides.empty() ? IntListId::None() : builder_.InternInts(strides)});
    const Value input = Value::Tensor(type, tensor);
    return Add({.name = builder_.Intern(name),
                .parent = parent,
                .duration = Nanos{nanos},
                .inputs = builder_.InternValues({&input, 1}),
                .op_schema = builder_.Intern(std::string(name) + "(Tensor a) -> Tensor")});
  }
  uint64_t Label(std::string_view name, std::optional<uint64_t> parent = std::nullopt,
                 std::optional<uint8_t> scope = std::nullopt) {
    return Add({.name = builder_.Intern(name), .parent = parent, .scope = scope});
  }
  const RecordedStep& Step() {
    trace_.emplace(builder_.Finish().value());
    step_.emplace(RecordedStep::Select(*trace_, "").value());
    return *step_;
  }
  std::optional<Nanos> Duration(NodeId node) const { return trace_->duration(node); }

 private:
  uint64_t Add(NodeRow row) {
    row.source_id = ++id_;
    row.kind = NodeKind::kCompute;
    row.place = Place::kHost;
    builder_.AddNode(row);
    return id_;
  }

  TraceBuilder builder_;
  uint64_t id_ = 0;
  std::optional<Trace> trace_;
  std::optional<RecordedStep> step_;
};

KernelMatch Match(Made& original, Made& replayed) {
  const RecordedStep& step = original.Step();
  return MatchKernels(step, step.top_operators(), replayed.Step(),
                      [&](NodeId node) { return original.Duration(node); });
}

TEST(ReplayMatch, CountsInnermostOperatorsByTheirForms) {
  Made original;
  const uint64_t linear = original.Operator("aten::linear", {8, 4}, {4, 1}, 100);
  original.Operator("aten::mm", {8, 4}, {4, 1}, 60, linear);
  original.Operator("aten::relu", {8, 4}, {4, 1}, 30);
  original.Operator("aten::relu", {8, 4}, {4, 1}, 10);
  Made replayed;
  replayed.Operator("aten::relu", {8, 4}, {4, 1}, 1);
  replayed.Operator("aten::relu", {4, 8}, {8, 1}, 1);
  replayed.Operator("aten::mm", {8, 4}, {1, 8}, 1);

  const KernelMatch match = Match(original, replayed);
  EXPECT_EQ(match.recorded, 3);
  ASSERT_TRUE(match.by_count && match.by_time);
  EXPECT_DOUBLE_EQ(*match.by_count, 1.0 / 3);
  // One of two relus, which took 40 together, of 100.
  EXPECT_DOUBLE_EQ(*match.by_time, 0.2);
  ASSERT_EQ(match.missing.size(), 2u);
  EXPECT_EQ(match.missing[0].inputs, "float32[8,4]");
  ASSERT_EQ(match.extra.size(), 2u);
  EXPECT_EQ(match.extra[0].op, "aten::mm");
  EXPECT_EQ(match.extra[0].inputs, "float32[8,4]:[1,8]");
  EXPECT_EQ(match.extra[1].inputs, "float32[4,8]");
}

// An operator with callees and own work, of which only the callee ran.
TEST(ReplayMatch, CodeThatDidNotRunIsAKernelThatIsMissing) {
  Made original;
  const uint64_t filter = original.Operator("my::filter", {8, 4}, {4, 1}, 100);
  original.Operator("aten::mul", {8, 4}, {4, 1}, 20, filter);
  Made replayed;
  replayed.Operator("aten::mul", {8, 4}, {4, 1}, 1);
  const RecordedStep& step = original.Step();
  const OwnCode own{.node = step.top_operators().front(), .time = Nanos{80}};
  const KernelMatch match =
      MatchKernels(step, step.top_operators(), replayed.Step(),
                   [&](NodeId node) { return original.Duration(node); }, {&own, 1});
  EXPECT_EQ(match.recorded, 2);
  EXPECT_DOUBLE_EQ(match.by_count.value(), 0.5);
  EXPECT_DOUBLE_EQ(match.by_time.value(), 0.2);
  ASSERT_EQ(match.missing.size(), 1u);
  EXPECT_EQ(match.missing[0].op, "my::filter");
}

TEST(ReplayMatch, LeavesOutStridesThatOneSideDoesNotSay) {
  Made original;
  original.Operator("aten::mm", {8, 4}, {}, 60);
  Made replayed;
  replayed.Operator("aten::mm", {8, 4}, {1, 8}, 1);
  EXPECT_EQ(Match(original, replayed).by_count, 1.0);
}

TEST(ReplayMatch, StridesOfDimensionsThatAreNotSteppedAlongSayNothing) {
  Made original;
  original.Operator("aten::mm", {1, 4}, {77, 1}, 60);
  Made replayed;
  replayed.Operator("aten::mm", {1, 4}, {4, 1}, 1);
  EXPECT_EQ(Match(original, replayed).by_count, 1.0);
}

TEST(ReplayMatch, TellsPhasesByTheLabelsAround) {
  Made made;
  made.Operator("aten::mm", {2}, {1}, 1);
  const uint64_t backward = made.Label("MmBackward0", std::nullopt, kBackwardScope);
  made.Operator("aten::mm", {2}, {1}, 1, backward);
  const uint64_t optimizer = made.Label("Optimizer.step#SGD.step");
  const uint64_t inner = made.Label("inner", optimizer);
  made.Operator("aten::add_", {2}, {1}, 1, inner);
  const RecordedStep& step = made.Step();
  std::vector<Phase> phases;
  for (const NodeId node : step.top_operators())
    phases.push_back(PhaseAt(step, step.position(node)));
  EXPECT_EQ(phases, (std::vector{Phase::kForward, Phase::kBackward, Phase::kOptimizer}));
}

TEST(ReplayMatch, SumsDifferencesSoThatTheyDoNotCancel) {
  const std::vector<OperatorTime> rows = {
      {.phase = Phase::kForward, .op = "a", .recorded = Nanos{60}, .replayed = Nanos{90}},
      {.phase = Phase::kForward, .op = "b", .recorded = Nanos{40}, .replayed = Nanos{10}},
      {.phase = Phase::kBackward, .op = "a", .recorded = Nanos{100}, .replayed = Nanos{100}},
  };
  EXPECT_EQ(TimeDifference(rows), 0.3);
  EXPECT_EQ(TimeDifference(rows, Phase::kForward), 0.6);
  EXPECT_EQ(TimeDifference(rows, Phase::kBackward), 0.0);
  EXPECT_EQ(TimeDifference(rows, Phase::kOptimizer), std::nullopt);
}

TEST(ReplayMatch, AMissingTimeMakesTheDifferenceUnknown) {
  std::vector<OperatorTime> rows = {
      {.op = "a", .count = 1, .recorded = Nanos{60}},
      {.op = "b", .count = 18, .recorded = Nanos{40}, .replayed = Nanos{50}}};
  EXPECT_EQ(TimeDifference(rows), std::nullopt);
  rows[1].count = 19;
  EXPECT_EQ(TimeDifference(rows), 0.25) << "one of twenty is left out";
}

}  // namespace
}  // namespace etude
