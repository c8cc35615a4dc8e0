#include "src/trace/program_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "src/trace/job/packed_trace.h"
#include "src/trace/same_trace.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

const std::vector<ProgramSpan> kSpans = {
    {.part = {.phase = Phase::kForward, .micro_batch = 0}, .first = 0, .last = 2},
    {.part = {.phase = Phase::kBackward, .micro_batch = 0}, .first = 3, .last = 4},
    {.part = {.step = 1, .phase = Phase::kOptimizer}, .first = 6, .last = 6}};

// Makes nodes 0 to 7 of one kind.
TraceBuilder EightNodes() {
  TraceBuilder builder;
  for (uint64_t id = 0; id < 8; ++id) {
    builder.AddNode({.source_id = id, .kind = NodeKind::kCompute, .name = builder.Intern("work")});
  }
  return builder;
}

TEST(ProgramParts, AreAFactOfTheTrace) {
  TraceBuilder builder = EightNodes();
  StateParts(kSpans, builder);
  ASSERT_EQ(builder.info().extras.size(), 1u);
  EXPECT_EQ(builder.text(builder.info().extras[0].text),
            R"([["forward",0,0,0,2],["backward",0,0,3,4],["optimizer",1,null,6,6]])");
  const Trace trace = builder.Finish().value();
  const auto stated = StatedParts(trace);
  ASSERT_TRUE(stated) << stated.error().message;
  EXPECT_EQ(*stated, kSpans);
  const std::vector<const ProgramSpan*> of = SpansOfNodes(trace, *stated);
  const std::vector<int> expected = {0, 0, 0, 1, 1, -1, 2, -1};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(of[i], expected[i] < 0 ? nullptr : &(*stated)[static_cast<size_t>(expected[i])]) << i;
  }
  const PackedTrace packed = PackedTrace::Pack(trace).value();
  const Trace unpacked = PackedTrace::FromBytes(packed.ToBytes()).value().Unpack().value();
  EXPECT_TRUE(testing_same::SameTrace(unpacked, trace));
  EXPECT_EQ(StatedParts(unpacked).value(), kSpans);
}

TEST(ProgramParts, AreStatedOnceOrForgotten) {
  TraceBuilder builder = EightNodes();
  StateParts(kSpans, builder);
  StateParts(std::span(kSpans).first(1), builder);
  EXPECT_EQ(builder.info().extras.size(), 1u);
  ForgetParts(builder);
  EXPECT_TRUE(StatedParts(builder.Finish().value()).value().empty());
}

// Without parts, the eight equal nodes are "work" × 8 in one motif; no motif may cross a part's
// boundary.
TEST(ProgramParts, MotifsKeepToThem) {
  TraceBuilder builder = EightNodes();
  StateParts(std::vector<ProgramSpan>{{.part = {.phase = Phase::kForward}, .first = 0, .last = 3},
                                      {.part = {.phase = Phase::kBackward}, .first = 4, .last = 7}},
             builder);
  const PackedTrace packed = PackedTrace::Pack(builder.Finish().value()).value();
  const MotifProgram& program = packed.program();
  std::vector<size_t> ends;
  size_t nodes = 0;
  for (const uint32_t part : program.parts) {
    nodes += MotifProgram{program.tokens, program.motifs, {part}}.Expand().size();
    ends.push_back(nodes);
  }
  EXPECT_EQ(std::ranges::count(ends, 4u), 1) << "a part ends with the fourth node";
  EXPECT_EQ(nodes, 8u);
}

TEST(ProgramParts, WhatDoesNotFitIsRefused) {
  const auto message = [](const std::string& text) {
    TraceBuilder builder = EightNodes();
    builder.info().extras.push_back(
        {.key = builder.Intern(kProgramPartsKey), .text = builder.Intern(text)});
    const auto stated = StatedParts(builder.Finish().value());
    return stated ? "" : stated.error().message;
  };
  EXPECT_EQ(message("[]"), "");
  EXPECT_EQ(message("{}"), "etude_parts: found no list, expected one of parts");
  EXPECT_EQ(message(R"([["forward",0,0,0,2],["backward",0,0,2,4]])"),
            "etude_parts: found [\"backward\",0,0,2,4] as part 1, expected [phase, step, "
            "micro-batch or null, first id, last id], ascending and apart");
  for (const char* wrong :
       {R"(["forward"])", R"([["forwards",0,0,0,2]])", R"([["forward",-1,0,0,2]])",
        R"([["forward",0,"0",0,2]])", R"([["forward",0,0,2,1]])", R"([["forward",0,0,0,2,3]])",
        R"([["forward",0.5,0,0,2]])"}) {
    EXPECT_NE(message(wrong), "") << wrong;
  }
}

}  // namespace
}  // namespace etude
