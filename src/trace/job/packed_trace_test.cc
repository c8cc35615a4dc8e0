#include "src/trace/job/packed_trace.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "src/trace/same_trace.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

using testing_same::SameTrace;

// Makes `count` pairs of a computation and an all-reduce, each node after the one before.
Trace ComputeAndReduce(int count) {
  TraceBuilder builder;
  for (int i = 0; i < 2 * count; ++i) {
    NodeRow row;
    row.source_id = builder.node_count();
    row.kind = i % 2 == 0 ? NodeKind::kCompute : NodeKind::kCollective;
    row.name = builder.Intern("step" + std::to_string(i / 2));
    const NodeId node = builder.AddNode(row);
    if (i > 0) builder.AddDep(node, NodeId::FromIndex(node.index() - 1), DepKind::kData);
    if (i % 2 == 0) continue;
    builder.SetComm(node, {.type = CollectiveType::kAllReduce, .bytes = Bytes{1024}});
  }
  return builder.Finish().value();
}

TEST(PackedTrace, WritesRepetitionsOnce) {
  const auto pack = [](int count) {
    const Trace trace = ComputeAndReduce(count);
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
    if (builder.node_count() == 2) row.parent = 0;       // later node
    if (builder.node_count() == 4) row.parent = 123456;  // missing
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

// Three nodes repeat; the dependency of the last one changes.
TEST(PackedTrace, MotifsMayDependInOtherWaysEachTime) {
  TraceBuilder builder;
  for (uint64_t i = 0; i < 60; ++i) {
    const bool computes = i % 3 == 2;
    const NodeId node =
        builder.AddNode({.source_id = i, .kind = computes ? NodeKind::kCompute : NodeKind::kSend});
    if (!computes) continue;
    builder.AddDep(node, NodeId(node.value() - (i % 4 == 0 ? 1 : 2)), DepKind::kData);
    builder.AddDep(node, NodeId(static_cast<uint32_t>((i * 7) % 60)), DepKind::kSync);
  }
  const Trace trace = builder.Finish().value();
  const auto packed = PackedTrace::FromBytes(PackedTrace::Pack(trace).value().ToBytes());
  EXPECT_TRUE(SameTrace(packed.value().Unpack().value(), trace));
}

TEST(PackedTrace, ComesBackFromBytes) {
  const Trace trace = ComputeAndReduce(100);
  const std::string bytes = PackedTrace::Pack(trace).value().ToBytes();
  EXPECT_LT(bytes.size(), 500u) << "of 200 nodes";
  const auto packed = PackedTrace::FromBytes(bytes);
  ASSERT_TRUE(packed.has_value()) << packed.error().message;
  EXPECT_TRUE(SameTrace(packed->Unpack().value(), trace));
  EXPECT_EQ(packed->ToBytes(), bytes);
}

// Any bytes give a trace or an error, in bounded time.
TEST(PackedTrace, TakesAnyBytes) {
  const std::string bytes = PackedTrace::Pack(ComputeAndReduce(3)).value().ToBytes();
  size_t refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int change : {1, 0x40, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ change);
      const auto packed = PackedTrace::FromBytes(changed);
      refused += !packed || !packed->Unpack() ? 1 : 0;
    }
    EXPECT_FALSE(PackedTrace::FromBytes(bytes.substr(0, at)).has_value()) << at;
  }
  EXPECT_GT(refused, bytes.size());
  EXPECT_EQ(PackedTrace::FromBytes(bytes + "x").error().message,
            "found invalid content at byte " + std::to_string(bytes.size()) +
                ", expected a complete packed trace of " + std::to_string(bytes.size() + 1) +
                " bytes");
}

TEST(PackedTrace, RefusesMoreThanItsBytesCanHold) {
  const std::string bytes = PackedTrace::Pack(ComputeAndReduce(4000)).value().ToBytes();
  const PackedTrace packed = PackedTrace::FromBytes(bytes).value();
  EXPECT_TRUE(packed.Unpack().has_value());
  const auto bomb = packed.Unpack({.ratio = 2, .ratio_grace_bytes = 1024});
  ASSERT_FALSE(bomb.has_value());
  EXPECT_NE(bomb.error().message.find("limit 'ratio'"), std::string::npos);
}

TEST(PackedTrace, HoldsNoNodes) {
  TraceBuilder builder;
  const Trace trace = builder.Finish().value();
  EXPECT_TRUE(SameTrace(PackedTrace::Pack(trace).value().Unpack().value(), trace));
}

}  // namespace
}  // namespace etude
