#include "src/synth/packed_trace.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "src/synth/microbench.h"
#include "src/synth/same_trace.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

using testing_same::SameTrace;

TEST(PackedTrace, WritesRepetitionsOnce) {
  const auto pack = [](int64_t count) {
    const Trace trace =
        MakeMicrobench({.pattern = Pattern::kOverlap, .ranks = 4, .count = count}, 1).value();
    const PackedTrace packed = PackedTrace::Pack(trace).value();
    EXPECT_TRUE(SameTrace(packed.Unpack().value(), trace));
    return packed;
  };
  const PackedTrace few = pack(16);
  const PackedTrace many = pack(4096);
  EXPECT_EQ(many.node_count(), 8192u);
  EXPECT_EQ(many.token_count(), few.token_count()) << "what repeats has no tokens of its own";
  EXPECT_LT(many.program().size(), 60u);
  EXPECT_LT(many.memory_bytes(), few.memory_bytes() + 1500);
}

TEST(PackedTrace, KeepsWhatIsUnusual) {
  using std::string_view_literals::operator""sv;
  TraceBuilder builder;
  builder.info().schema = "x";
  builder.info().pid = -5;
  builder.info().extras.push_back(
      {.key = builder.Intern("k"), .text = builder.Intern("{\"7\":007}")});
  builder.stats().Count(Stat::kRoundedTime, 3);
  for (const std::string_view name :
       {"layer.007.99999999999999999999"sv, "a\0b 12"sv, ""sv, "-3 layers 12"sv, "n"sv, "a1"sv}) {
    NodeRow row;
    row.source_id = builder.node_count() == 3 ? 0 : UINT64_MAX - builder.node_count();
    row.kind = NodeKind::kCollective;
    row.name = builder.Intern(name);
    row.start = Nanos{INT64_MIN};
    row.scope = 255;
    row.fw_tid = UINT64_MAX;
    row.inputs = builder.InternValues({});
    row.index_values = builder.Intern(name);
    if (builder.node_count() == 2) row.parent = 0;       // comes later
    if (builder.node_count() == 4) row.parent = 123456;  // is not there
    const NodeId node = builder.AddNode(row);
    builder.SetComm(node, {.bytes = Bytes{-1}, .in_split = builder.InternInts({})});
    builder.AddDep(node, 77, DepKind::kSync);
    if (node.index() > 0) builder.AddDep(node, NodeId(0), DepKind::kData);
    builder.AddExtra(node, {.key = builder.Intern("e"),
                            .text = builder.Intern("\x0a\x02"
                                                   "3\0"sv),
                            .form = Extra::Form::kProtobuf});
  }
  NodeRow again;
  again.source_id = 0;
  again.lane = builder.InternLane({.process = builder.Intern("12"), .device = -7});
  builder.AddNode(again);
  builder.AddProcessGroup({.name = builder.Intern("0"), .size = -2});
  const Trace trace = builder.Finish().value();
  const PackedTrace packed = PackedTrace::Pack(trace).value();
  EXPECT_TRUE(SameTrace(packed.Unpack().value(), trace));
}

TEST(PackedTrace, HoldsNoNodes) {
  TraceBuilder builder;
  const Trace trace = builder.Finish().value();
  EXPECT_TRUE(SameTrace(PackedTrace::Pack(trace).value().Unpack().value(), trace));
}

}  // namespace
}  // namespace etude
