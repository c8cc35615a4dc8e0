#include "src/sim/result/sim_memory.h"

#include <gtest/gtest.h>
#include <protozero/pbf_writer.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "src/formats/chakra/chakra_attr.h"
#include "src/formats/chakra/chakra_schema.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

struct Node {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::optional<uint64_t> bytes;
};

Trace TraceOf(const std::vector<Node>& nodes) {
  constexpr auto kAttr = static_cast<uint32_t>(chakra::NodeField::kAttr);
  TraceBuilder builder;
  for (const Node& node : nodes) {
    NodeRow row;
    row.source_id = builder.node_count();
    row.kind = NodeKind::kCompute;
    const NodeId made = builder.AddNode(row);
    const auto add = [&](std::string_view name, const std::string& field) {
      builder.AddExtra(made, {.key = builder.Intern(name),
                              .text = builder.Intern(field),
                              .form = Extra::Form::kProtobuf});
    };
    for (const auto& [name, values] :
         {std::pair("inputs", &node.inputs), std::pair("outputs", &node.outputs)}) {
      if (values->empty()) continue;
      std::string list;
      protozero::pbf_writer list_writer(list);
      for (const std::string& value : *values) list_writer.add_string(1, value);
      std::string attr;
      protozero::pbf_writer attr_writer(attr);
      attr_writer.add_string(1, name);
      attr_writer.add_message(30, list);
      std::string field;
      protozero::pbf_writer(field).add_message(kAttr, attr);
      add(name, field);
    }
    if (node.bytes) {
      std::string field;
      chakra::AddUintAttr(field, kAttr, chakra::kMemoryInUse, chakra::ValueType::kUint64,
                          *node.bytes);
      add(chakra::kMemoryInUse, field);
    }
  }
  return builder.Finish().value();
}

SimRankResult TimesOf(std::vector<int64_t> begins, std::vector<int64_t> ends) {
  return {.finished = true, .begins = std::move(begins), .ends = std::move(ends)};
}

// Weight w lives from the start until 10, a from 0 to 30, b from 10 to 45, and c, which is never
// read, from 30.
TEST(SimMemory, LivesOfTensors) {
  const auto nodes = [](const std::string& size_of_c) -> std::vector<Node> {
    return {{.inputs = {"w", "100.0"}, .outputs = {"a", "50"}},
            {.inputs = {"a", "50"}, .outputs = {"b", "30"}},
            {.inputs = {"b", "30"}, .outputs = {"c", size_of_c}}};
  };
  const SimRankResult times = TimesOf({0, 10, 30}, {10, 30, 45});
  Trace trace = TraceOf(nodes("5"));
  const SimProgram program = *MakeSimRank(trace)->program;
  SimMemory memory = FindSimMemory(trace, program, times).value();
  EXPECT_FALSE(memory.in_bytes);
  EXPECT_EQ(memory.before, 100);
  EXPECT_EQ(memory.peak, 150);
  EXPECT_EQ(memory.at, 0);
  EXPECT_EQ(memory.node, NodeId(0));
  EXPECT_EQ(memory.after, 5);
  EXPECT_EQ(memory.unknown, 0u);

  trace = TraceOf(nodes("200"));
  memory = FindSimMemory(trace, program, times).value();
  EXPECT_EQ(memory.peak, 230);
  EXPECT_EQ(memory.at, 30);
  EXPECT_EQ(memory.node, NodeId(2));

  trace = TraceOf(nodes("?"));
  memory = FindSimMemory(trace, program, times).value();
  EXPECT_EQ(memory.peak, 150);
  EXPECT_EQ(memory.after, 0);
  EXPECT_EQ(memory.unknown, 1u);
}

TEST(SimMemory, BytesByAFormula) {
  const Trace trace = TraceOf({{.bytes = 10}, {.bytes = 40}, {.bytes = 40}, {}});
  const SimProgram program = *MakeSimRank(trace)->program;
  const SimMemory memory =
      FindSimMemory(trace, program, TimesOf({0, 30, 20, 5}, {5, 40, 30, 9})).value();
  EXPECT_TRUE(memory.in_bytes);
  EXPECT_EQ(memory.peak, 40);
  EXPECT_EQ(memory.at, 20);
  EXPECT_EQ(memory.node, NodeId(2));
  EXPECT_EQ(memory.before, 10);
  EXPECT_EQ(memory.after, 40);
}

TEST(SimMemory, TracesThatSayNothing) {
  const Trace trace = TraceOf({{}});
  EXPECT_FALSE(FindSimMemory(trace, *MakeSimRank(trace)->program, TimesOf({0}, {1})));
}

}  // namespace
}  // namespace etude
