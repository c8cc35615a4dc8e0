// Selections of traces with stated parts.

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "src/trace/program_parts.h"
#include "src/trace/trace_builder.h"
#include "src/transform/edit/slice.h"
#include "src/transform/operators/program_phases.h"

namespace etude {
namespace {

using StatedIds = std::set<uint64_t>;

// Two steps of a forward and a backward pass of two nodes each for two micro-batches, without
// backward of the second one in step 1, and a node after all parts. Ids count from 10.
Trace TwoStatedSteps() {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kChakra);
  for (uint64_t id = 10; id < 25; ++id) {
    builder.AddNode({.source_id = id,
                     .kind = NodeKind::kCompute,
                     .place = Place::kDevice,
                     .name = builder.Intern("work")});
  }
  const auto part = [](int64_t step, Phase phase, int64_t micro_batch) {
    return ProgramPart{.step = step, .phase = phase, .micro_batch = micro_batch};
  };
  StateParts(std::vector<ProgramSpan>{{part(0, Phase::kForward, 0), 10, 11},
                                      {part(0, Phase::kForward, 1), 12, 13},
                                      {part(0, Phase::kBackward, 0), 14, 15},
                                      {part(0, Phase::kBackward, 1), 16, 17},
                                      {part(1, Phase::kForward, 0), 18, 19},
                                      {part(1, Phase::kForward, 1), 20, 21},
                                      {part(1, Phase::kBackward, 0), 22, 23}},
             builder);
  return builder.Finish().value();
}

StatedIds SelectedIds(const Selection& selection) {
  const auto slice = Slice(TwoStatedSteps(), selection, {});
  StatedIds ids;
  EXPECT_TRUE(slice) << slice.error().message;
  if (slice) ForEachNode(slice->trace, [&](NodeId n) { ids.insert(slice->trace.source_id(n)); });
  return ids;
}

TEST(StatedParts, AreSelected) {
  EXPECT_EQ(SelectedIds({.phases = {"backward"}}), (StatedIds{14, 15, 16, 17, 22, 23}));
  EXPECT_EQ(SelectedIds({.steps = {"1"}}), (StatedIds{18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(SelectedIds({.steps = {"..1"}, .micro_batches = {"1"}}), (StatedIds{12, 13, 16, 17}));
  EXPECT_EQ(SelectedIds({.steps = {"0", "1.."}, .phases = {"forward"}, .micro_batches = {"0"}}),
            (StatedIds{10, 11, 18, 19}));
}

TEST(StatedParts, StayTrueOfASlice) {
  const Trace slice = Slice(TwoStatedSteps(), {.micro_batches = {"1"}}, {}).value().trace;
  const ProgramPhases phases = FindPhases(slice).value();
  EXPECT_TRUE(phases.stated);
  EXPECT_EQ(phases.steps, 2u);
  EXPECT_EQ(phases.micro_batches, 1u);
  ASSERT_EQ(phases.rows.size(), 2u);
  EXPECT_EQ(phases.rows[0].stretches, 2u);
  EXPECT_EQ(phases.rows[0].nodes, 4u);
  EXPECT_EQ(phases.rows[0].shape, (LayerShape{.layers = 1, .width = 2})) << "of a stretch";
  EXPECT_EQ(phases.rows[1].phase, Phase::kBackward);
  EXPECT_EQ(phases.rows[1].stretches, 1u);
}

TEST(StatedParts, WhatIsNotThereIsRefused) {
  const auto message = [](const Selection& selection) {
    const auto slice = Slice(TwoStatedSteps(), selection, {});
    return slice ? "" : slice.error().message;
  };
  EXPECT_EQ(message({.steps = {"2"}}), "--step 2: the trace has no such step; it has 0, 1");
  EXPECT_EQ(message({.micro_batches = {"2"}}),
            "--micro-batch 2: the trace has no such micro-batch; it has 0, 1");
  EXPECT_EQ(message({.phases = {"optimizer"}}), "no node matches all selectors");
  TraceBuilder none;
  none.AddNode({.kind = NodeKind::kCompute});
  const auto slice = Slice(none.Finish().value(), {.micro_batches = {"0"}}, {});
  ASSERT_FALSE(slice);
  EXPECT_EQ(slice.error().message,
            "--micro-batch: the trace has no micro-batches; only generated traces have them");
}

// Two nodes below autograd's function, one elsewhere; a step's mark has no phase.
TEST(ProgramPhases, AreToldByLabels) {
  TraceBuilder builder;
  const auto add = [&](uint64_t id, std::string_view name, NodeKind kind,
                       std::optional<uint64_t> parent) {
    builder.AddNode({.source_id = id,
                     .kind = kind,
                     .place = Place::kHost,
                     .name = builder.Intern(name),
                     .parent = parent});
  };
  add(1, "ProfilerStep#3", NodeKind::kLabel, std::nullopt);
  add(2, "aten::mm", NodeKind::kOperator, std::nullopt);
  const std::string label = "autograd::engine::evaluate_function: MmBackward0";
  add(3, label, NodeKind::kLabel, std::nullopt);
  add(4, "aten::mm", NodeKind::kOperator, 3);
  const ProgramPhases phases = FindPhases(builder.Finish().value()).value();
  EXPECT_FALSE(phases.stated);
  EXPECT_EQ(phases.steps, 1u);
  ASSERT_EQ(phases.rows.size(), 2u);
  EXPECT_EQ(phases.rows[0].nodes, 1u);
  EXPECT_EQ(phases.rows[1].phase, Phase::kBackward);
  EXPECT_EQ(phases.rows[1].nodes, 2u);
}

}  // namespace
}  // namespace etude
