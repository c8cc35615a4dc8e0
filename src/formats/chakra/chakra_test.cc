// Reader and writer of Chakra traces together: against generated protobuf code, and round trips.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "et_def.pb.h"
#include "src/formats/chakra/chakra_reader.h"
#include "src/formats/chakra/chakra_schema.h"
#include "src/formats/chakra/chakra_writer.h"
#include "src/formats/test_support.h"
#include "src/trace/simulated.h"
#include "src/trace/trace_builder.h"
#include "tests/trace_dump.h"

namespace etude {
namespace {

using testing_support::Framed;

namespace pb = ChakraProtoMsg;

std::string Framed(const google::protobuf::Message& message) {
  return Framed(message.SerializeAsString());
}

Result<Trace> ReadChakra(const std::string& bytes, const ReadOptions& options = {},
                         size_t chunk = SIZE_MAX, bool cut = false) {
  static const RunContext context;
  const auto reader = MakeChakraReader("test.et", options, context);
  for (size_t at = 0; at < bytes.size(); at += std::min(chunk, bytes.size() - at)) {
    ETUDE_RETURN_IF_ERROR(reader->Push(std::string_view(bytes).substr(at, chunk)));
  }
  return reader->Finish(cut);
}

std::string Write(const Trace& trace, const ChakraWriteOptions& options = {}) {
  std::string out;
  const auto report = WriteChakra(trace, options, [&](std::string_view bytes) {
    out += bytes;
    return Status();
  });
  EXPECT_TRUE(report.has_value());
  return out;
}

struct Decoded {
  pb::GlobalMetadata metadata;
  std::vector<pb::Node> nodes;
};

// By generated code alone.
Decoded Decode(const std::string& bytes) {
  Decoded decoded;
  size_t at = 0;
  bool first = true;
  while (at < bytes.size()) {
    size_t length = 0;
    int shift = 0;
    while (true) {
      const auto byte = static_cast<uint8_t>(bytes[at++]);
      length |= static_cast<size_t>(byte & 0x7F) << shift;
      shift += 7;
      if (byte < 0x80) break;
    }
    const std::string message = bytes.substr(at, length);
    at += length;
    if (first) {
      EXPECT_TRUE(decoded.metadata.ParseFromString(message));
    } else {
      EXPECT_TRUE(decoded.nodes.emplace_back().ParseFromString(message));
    }
    first = false;
  }
  return decoded;
}

const pb::AttributeProto* FindAttr(const pb::Node& node, const std::string& name) {
  for (const auto& attr : node.attr()) {
    if (attr.name() == name) return &attr;
  }
  return nullptr;
}

void AddInt(pb::Node& node, const std::string& name, int64_t value) {
  auto* attr = node.add_attr();
  attr->set_name(name);
  attr->set_int64_val(value);
}

// A node as written by chakra_converter.
pb::Node ConverterNode(uint64_t id, const std::string& name, bool cpu, int64_t stream) {
  pb::Node node;
  node.set_id(id);
  node.set_name(name);
  node.set_type(pb::COMP_NODE);
  for (auto* io : {node.mutable_inputs(), node.mutable_outputs()}) {
    io->set_values("[]");
    io->set_shapes("[]");
    io->set_types("[]");
  }
  AddInt(node, "rf_id", static_cast<int64_t>(id) + 100);
  AddInt(node, "fw_parent", 0);
  AddInt(node, "seq_id", -1);
  AddInt(node, "scope", 0);
  AddInt(node, "tid", 1);
  AddInt(node, "fw_tid", 0);
  auto* schema = node.add_attr();
  schema->set_name("op_schema");
  schema->set_string_val("");
  auto* is_cpu = node.add_attr();
  is_cpu->set_name("is_cpu_op");
  is_cpu->set_bool_val(cpu);
  AddInt(node, "stream", stream);
  return node;
}

TEST(ChakraReader, ReadsWhatTheConverterWrites) {
  pb::GlobalMetadata metadata;
  auto* schema = metadata.add_attr();
  schema->set_name("schema");
  schema->set_string_val("1.1.0-chakra.0.0.4");
  auto* pid = metadata.add_attr();
  pid->set_name("pid");
  pid->set_uint64_val(77);

  pb::Node host = ConverterNode(3, "aten::add", true, 0);
  host.mutable_attr(6)->set_string_val("aten::add.Tensor(Tensor a, Tensor b) -> Tensor");
  host.add_ctrl_deps(1);
  host.add_data_deps(2);
  host.set_duration_micros(5);
  host.mutable_inputs()->set_values("[[1, 2, 0, 6, 4, 'cuda:0'], 0.5, '<None>', [1, 2]]");
  host.mutable_inputs()->set_shapes("[[2, 3], [], [], [[], []]]");
  host.mutable_inputs()->set_types("['Tensor(float)', 'Double', 'None', 'GenericList[Int,Int]']");

  pb::Node kernel = ConverterNode(4, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", false, 20);
  kernel.set_type(pb::COMM_COLL_NODE);
  kernel.add_ctrl_deps(3);
  kernel.add_data_deps(3);
  kernel.set_duration_micros(9);
  AddInt(kernel, "comm_type", pb::ALL_REDUCE);
  AddInt(kernel, "comm_size", 4096);
  auto* group = kernel.add_attr();
  group->set_name("pg_name");
  group->set_string_val("7");

  const std::string bytes =
      Framed(metadata) +
      Framed(ConverterNode(1, "[pytorch|profiler|execution_trace|thread]", true, 0)) +
      Framed(ConverterNode(2, "## step ##", true, 0)) + Framed(host) + Framed(kernel);
  const auto trace = ReadChakra(bytes);
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  EXPECT_EQ(trace->info().schema, "1.1.0-chakra.0.0.4");
  EXPECT_EQ(trace->info().pid, 77);
  EXPECT_TRUE(trace->traits().exclusive_durations);
  ASSERT_EQ(trace->node_count(), 4u);
  EXPECT_EQ(trace->kind(NodeId(0)), NodeKind::kThread);
  EXPECT_EQ(trace->kind(NodeId(1)), NodeKind::kLabel);

  const NodeId op(2);
  EXPECT_EQ(trace->kind(op), NodeKind::kOperator);
  EXPECT_EQ(trace->place(op), Place::kHost);
  EXPECT_EQ(trace->parent(op), NodeId(0));
  EXPECT_EQ(trace->duration(op), Nanos{5000});
  EXPECT_EQ(trace->start(op), std::nullopt);
  EXPECT_EQ(trace->rf_id(op), 103u);
  ASSERT_EQ(trace->inputs(op).size(), 4u);
  const Value tensor = trace->inputs(op)[0];
  ASSERT_EQ(tensor.kind, ValueKind::kTensor);
  EXPECT_EQ(trace->tensor(tensor.as_tensor()).numel, 6);
  EXPECT_EQ(trace->ints(trace->tensor(tensor.as_tensor()).shape)[1], 3);
  EXPECT_EQ(trace->inputs(op)[1].as_double(), 0.5);
  EXPECT_EQ(trace->inputs(op)[2].kind, ValueKind::kNone);
  EXPECT_EQ(trace->inputs(op)[3].kind, ValueKind::kList);
  EXPECT_EQ(trace->extras(op).size(), 0u) << "all of it has a place";

  const NodeId coll(3);
  EXPECT_EQ(trace->kind(coll), NodeKind::kCollective);
  EXPECT_EQ(trace->place(coll), Place::kDevice);
  EXPECT_EQ(trace->parent(coll), op) << "its launcher";
  EXPECT_EQ(trace->lane(trace->lane_id(coll)).stream, 20);
  ASSERT_NE(trace->comm(coll), nullptr);
  EXPECT_EQ(trace->comm(coll)->type, CollectiveType::kAllReduce);
  EXPECT_EQ(trace->comm(coll)->bytes, Bytes{4096});
  EXPECT_EQ(trace->text(trace->comm(coll)->group), "7");

  EXPECT_EQ(Write(*trace), bytes) << "and back";
}

TEST(ChakraReader, KeepsWhatItDoesNotUnderstand) {
  pb::Node node;
  node.set_id(5);
  node.set_type(pb::COMP_NODE);
  auto* list = node.add_attr();
  list->set_name("involved_dim");
  list->mutable_bool_list()->add_values(true);
  auto* odd = node.add_attr();
  odd->set_name("rf_id");
  odd->set_string_val("twelve");
  auto* documented = node.add_attr();
  documented->set_name("comm_size");
  documented->set_doc_string("in bytes");
  documented->set_int64_val(3);
  auto* twice = node.add_attr();
  twice->set_name("tid");
  twice->set_int64_val(1);
  *node.add_attr() = *twice;
  std::string message = node.SerializeAsString();
  // A field of the storage proposal (11), and a node type of it (8, STORAGE).
  message += std::string("\x5A\x03", 2) + "abc" + std::string("\x18\x08", 2);
  const std::string bytes = Framed(std::string()) + Framed(message);
  const auto trace = ReadChakra(bytes);
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  const NodeId only(0);
  EXPECT_EQ(trace->rf_id(only), std::nullopt);
  EXPECT_EQ(trace->comm(only), nullptr);
  EXPECT_EQ(trace->tid(only), 1u);
  EXPECT_EQ(trace->kind(only), NodeKind::kUnknown) << "the last type counts";
  std::vector<std::string> keys;
  for (const Extra& extra : trace->extras(only)) keys.emplace_back(trace->text(extra.key));
  EXPECT_EQ(keys, (std::vector<std::string>{"involved_dim", "rf_id", "comm_size", "tid", "field 11",
                                            "type", "layout"}));
  const Decoded decoded = Decode(Write(*trace));
  ASSERT_EQ(decoded.nodes.size(), 1u);
  EXPECT_EQ(decoded.nodes[0].type(), 8);
  EXPECT_EQ(decoded.nodes[0].attr_size(), 5);
  EXPECT_EQ(decoded.nodes[0].attr(2).doc_string(), "in bytes");
  const auto& unknown = decoded.nodes[0].GetReflection()->GetUnknownFields(decoded.nodes[0]);
  ASSERT_EQ(unknown.field_count(), 1);
  EXPECT_EQ(unknown.field(0).number(), 11);
}

TEST(ChakraReader, TakesNumbersOfAnyTypeAndWritesThemBack) {
  pb::Node node;
  node.set_id(1);
  node.set_type(pb::COMM_SEND_NODE);
  node.add_attr()->set_name("comm_tag");
  node.mutable_attr(0)->set_uint32_val(9);
  node.add_attr()->set_name("comm_dst");
  node.mutable_attr(1)->set_sint64_val(3);
  node.add_attr()->set_name("is_cpu_op");
  node.mutable_attr(2)->set_int32_val(0);
  node.add_attr()->set_name("comm_size");
  node.mutable_attr(3)->set_fixed64_val(1 << 20);
  const std::string bytes = Framed(std::string()) + Framed(node);
  const auto trace = ReadChakra(bytes);
  ASSERT_TRUE(trace.has_value());
  const Comm* comm = trace->comm(NodeId(0));
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(comm->tag, 9);
  EXPECT_EQ(comm->dst, 3);
  EXPECT_EQ(comm->bytes, Bytes{1 << 20});
  EXPECT_EQ(trace->place(NodeId(0)), Place::kDevice);
  EXPECT_EQ(Write(*trace), bytes);
}

TEST(ChakraReader, TellsAnUnknownTimeFromZero) {
  pb::Node node;
  node.set_id(1);
  std::string known = node.SerializeAsString() + std::string("\x30\x00\x38\x00", 4);
  const auto trace = ReadChakra(Framed(std::string()) + Framed(known) + Framed(node));
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->start(NodeId(0)), Nanos{0});
  EXPECT_EQ(trace->duration(NodeId(0)), Nanos{0});
  EXPECT_EQ(trace->start(NodeId(1)), std::nullopt);
  EXPECT_EQ(trace->duration(NodeId(1)), std::nullopt);
}

TEST(ChakraReader, ReadsPackedAndUnpackedDependencies) {
  // data_deps 1 and 2 one by one, then 3 packed.
  const std::string message("\x08\x04\x28\x01\x28\x02\x2A\x01\x03", 9);
  std::string bytes = Framed(std::string());
  for (const char id : {'\x01', '\x02', '\x03'}) bytes += Framed(std::string{'\x08', id});
  const auto trace = ReadChakra(bytes + Framed(message));
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->deps(NodeId(3)).size(), 3u);
}

TEST(ChakraReader, AnEmptyMessageIsANodeOfDefaults) {
  const auto trace = ReadChakra(std::string(3, '\0'));
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->node_count(), 2u);
  EXPECT_EQ(trace->source_id(NodeId(0)), 0u);
  EXPECT_EQ(trace->kind(NodeId(0)), NodeKind::kUnknown);
  EXPECT_EQ(trace->stats()[Stat::kDuplicateId], 1u);
}

std::string SmallFile() {
  return Framed(std::string()) + Framed(ConverterNode(1, "a", true, 0)) +
         Framed(ConverterNode(2, "b", true, 0));
}

TEST(ChakraReader, ReadsTheWholeNodesOfACutFile) {
  const std::string bytes = SmallFile();
  const auto cut = ReadChakra(bytes.substr(0, bytes.size() - 10));
  ASSERT_TRUE(cut.has_value());
  EXPECT_EQ(cut->node_count(), 1u);
  EXPECT_EQ(cut->stats()[Stat::kTruncated], 1u);
  EXPECT_FALSE(ReadChakra(bytes.substr(0, bytes.size() - 10), {.strict = true}).has_value());
  const auto gzip_cut = ReadChakra(bytes, {}, SIZE_MAX, /*cut=*/true);
  ASSERT_TRUE(gzip_cut.has_value());
  EXPECT_EQ(gzip_cut->node_count(), 2u);
  EXPECT_EQ(gzip_cut->stats()[Stat::kTruncated], 1u);
}

TEST(ChakraReader, SkipsAndCountsMalformedNodes) {
  // Field 0, a group, a text longer than its message.
  for (const std::string& bad :
       {std::string("\x00\x01", 2), std::string("\x0B\x0C", 2), std::string("\x12\x7F", 2)}) {
    const std::string bytes =
        Framed(std::string()) + Framed(bad) + Framed(ConverterNode(2, "b", true, 0));
    const auto trace = ReadChakra(bytes);
    ASSERT_TRUE(trace.has_value());
    EXPECT_EQ(trace->node_count(), 1u);
    EXPECT_EQ(trace->stats()[Stat::kMalformedElement], 1u);
    const auto strict = ReadChakra(bytes, {.strict = true});
    ASSERT_FALSE(strict.has_value());
    EXPECT_NE(strict.error().message.find("test.et:byte 1 (node message 1)"), std::string::npos)
        << strict.error().message;
  }
}

TEST(ChakraReader, RefusesOtherFiles) {
  for (const std::string& bytes :
       {std::string(), std::string("h"), std::string("hello, world, this is no trace of any kind"),
        std::string("{\"schema\": \"1.1.1\", \"nodes\": []}"), std::string(64, '\xff'),
        Framed(std::string("\x0B", 1)), Framed(std::string()) + Framed(std::string("\x00", 1))}) {
    const auto trace = ReadChakra(bytes);
    ASSERT_FALSE(trace.has_value()) << bytes;
    EXPECT_EQ(trace.error().code, ErrorCode::kBadInput);
    EXPECT_TRUE(trace.error().message.starts_with("test.et:byte "));
  }
}

TEST(ChakraReader, EnforcesTheLimitOnAMessage) {
  RunContext context;
  context.limits.element_bytes = 1000;
  const auto reader = MakeChakraReader("test.et", {}, context);
  const Status status = reader->Push(std::string("\x00\xE9\x07", 3));
  ASSERT_FALSE(status.has_value());
  EXPECT_NE(status.error().message.find("element_bytes"), std::string::npos);
}

TEST(ChakraReader, RepairsNamesThatAreNotUtf8) {
  const auto trace = ReadChakra(Framed(std::string()) + Framed(std::string("\x12\x03"
                                                                           "a\xFF"
                                                                           "b",
                                                                           5)));
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->name(NodeId(0)), "a\uFFFDb");
  EXPECT_EQ(trace->stats()[Stat::kRepairedUtf8], 1u);
}

TEST(ChakraReader, KeepsArgumentsInOtherWords) {
  pb::Node node = ConverterNode(1, "a", true, 0);
  node.mutable_inputs()->set_values("[1,2]");  // no blank after the comma
  node.mutable_inputs()->set_shapes("[[],[]]");
  node.mutable_inputs()->set_types("[\"Int\",\"Int\"]");
  node.mutable_outputs()->set_values("{'no': 'list'}");
  const std::string bytes = Framed(std::string()) + Framed(node);
  const auto trace = ReadChakra(bytes);
  ASSERT_TRUE(trace.has_value());
  ASSERT_EQ(trace->inputs(NodeId(0)).size(), 2u) << "understood";
  EXPECT_EQ(trace->inputs(NodeId(0))[1].as_int(), 2);
  EXPECT_FALSE(trace->output_list(NodeId(0)));
  EXPECT_EQ(trace->stats()[Stat::kUnknownValue], 1u);
  EXPECT_EQ(Write(*trace), bytes) << "but written back as they were";
}

TEST(ChakraReader, ReadsProcessGroups) {
  pb::Node node = ConverterNode(1, "## process_group:init ##", true, 0);
  node.set_type(pb::METADATA_NODE);
  node.mutable_inputs()->set_values(
      R"(['[{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", )"
      R"("ranks": [0, 1], "group_size": 2}]'])");
  node.mutable_inputs()->set_shapes("[[]]");
  node.mutable_inputs()->set_types("['String']");
  const auto trace = ReadChakra(Framed(std::string()) + Framed(node));
  ASSERT_TRUE(trace.has_value());
  ASSERT_EQ(trace->process_groups().size(), 1u);
  EXPECT_EQ(trace->text(trace->process_groups()[0].description), "default_pg");
  EXPECT_EQ(trace->ints(trace->process_groups()[0].ranks).size(), 2u);
}

TEST(ChakraReader, GivesTheSameForChunksOfAnySize) {
  const std::string bytes = SmallFile();
  const auto whole = ReadChakra(bytes);
  ASSERT_TRUE(whole.has_value());
  for (size_t chunk = 1; chunk < 40; ++chunk) {
    const auto trace = ReadChakra(bytes, {}, chunk);
    ASSERT_TRUE(trace.has_value());
    EXPECT_EQ(testing_dump::NodeTexts(*trace), testing_dump::NodeTexts(*whole));
  }
}

// Small hand-written traces.
struct NodeSketch {
  TraceBuilder builder;
  NodeRow row;

  NodeId Add(uint64_t id, NodeKind kind, Place place) {
    row.source_id = id;
    row.kind = kind;
    row.place = place;
    row.name = builder.Intern("n" + std::to_string(id));
    const NodeId node = builder.AddNode(row);
    row = NodeRow();
    return node;
  }
  Trace Finish() { return builder.Finish().value(); }
};

TEST(ChakraWriter, WritesWhatSimulatorsRead) {
  NodeSketch sketch;
  const NodeId send = sketch.Add(7, NodeKind::kSend, Place::kDevice);
  sketch.builder.SetComm(send, {.bytes = Bytes{64}, .dst = 3, .tag = 5, .priority = 1});
  const NodeId coll = sketch.Add(3, NodeKind::kCollective, Place::kDevice);
  sketch.builder.SetComm(coll, {.type = CollectiveType::kReduceScatter,
                                .group = sketch.builder.Intern("2"),
                                .bytes = Bytes{128}});
  sketch.builder.AddDep(send, coll, DepKind::kSync);
  const Decoded decoded = Decode(Write(sketch.Finish()));
  ASSERT_EQ(decoded.nodes.size(), 2u);
  const pb::Node& first = decoded.nodes[0];
  EXPECT_EQ(first.id(), 3u) << "ascending ids";
  EXPECT_EQ(first.type(), pb::COMM_COLL_NODE);
  EXPECT_EQ(FindAttr(first, "is_cpu_op")->value_case(), pb::AttributeProto::kBoolVal);
  EXPECT_EQ(FindAttr(first, "comm_type")->int64_val(), pb::REDUCE_SCATTER);
  EXPECT_EQ(FindAttr(first, "comm_size")->int64_val(), 128);
  EXPECT_EQ(FindAttr(first, "pg_name")->string_val(), "2");
  EXPECT_FALSE(first.has_inputs());
  const pb::Node& second = decoded.nodes[1];
  EXPECT_EQ(second.type(), pb::COMM_SEND_NODE);
  EXPECT_EQ(FindAttr(second, "comm_dst")->int32_val(), 3);
  EXPECT_EQ(FindAttr(second, "comm_tag")->int32_val(), 5);
  EXPECT_EQ(FindAttr(second, "comm_priority")->int32_val(), 1);
  EXPECT_EQ(FindAttr(second, "comm_type"), nullptr) << "nothing invented";
  ASSERT_EQ(second.data_deps_size(), 1);
  EXPECT_EQ(second.data_deps(0), 3u);
}

// Simulators run nodes on threads of a computing host like device nodes.
TEST(ChakraWriter, AHostThatComputesIsADeviceToSimulators) {
  TraceBuilder builder;
  builder.info().traits.exclusive_durations = true;
  StateHostComputes(builder);
  builder.AddNode({.source_id = 1,
                   .kind = NodeKind::kOperator,
                   .place = Place::kHost,
                   .name = builder.Intern("aten::mm"),
                   .lane = builder.InternLane({.thread = builder.Intern("host")})});
  const Trace trace = builder.Finish().value();
  const std::string bytes = Write(trace);
  const Decoded decoded = Decode(bytes);
  ASSERT_EQ(decoded.nodes.size(), 1u);
  EXPECT_FALSE(FindAttr(decoded.nodes[0], "is_cpu_op")->bool_val());
  const auto back = ReadChakra(bytes);
  ASSERT_TRUE(back.has_value());
  EXPECT_TRUE(HostComputes(*back));
  EXPECT_EQ(back->place(NodeId(0)), Place::kHost);
  EXPECT_EQ(back->kind(NodeId(0)), NodeKind::kOperator);
  EXPECT_EQ(back->text(back->lane(back->lane_id(NodeId(0))).thread), "host");
  EXPECT_EQ(Write(*back), bytes);
}

TEST(ChakraWriter, RoundsTimesAndKeepsTheExactOnes) {
  NodeSketch sketch;
  sketch.row.start = Nanos{1500};
  sketch.row.duration = Nanos{2499};
  sketch.Add(0, NodeKind::kKernel, Place::kDevice);
  sketch.row.start = Nanos{-1};
  sketch.row.duration = Nanos{0};
  sketch.Add(1, NodeKind::kKernel, Place::kDevice);
  const Trace trace = sketch.Finish();
  std::string bytes;
  const auto report = WriteChakra(trace, {}, [&](std::string_view part) {
    bytes += part;
    return Status();
  });
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->clipped_times, 1u);
  const Decoded decoded = Decode(bytes);
  EXPECT_EQ(decoded.nodes[0].start_time_micros(), 2u);
  EXPECT_EQ(decoded.nodes[0].duration_micros(), 2u);
  EXPECT_EQ(FindAttr(decoded.nodes[0], "etude_start_ns")->int64_val(), 1500);
  EXPECT_EQ(FindAttr(decoded.nodes[1], "etude_dur_ns"), nullptr);
  const auto back = ReadChakra(bytes);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->start(NodeId(0)), Nanos{1500});
  EXPECT_EQ(back->duration(NodeId(0)), Nanos{2499});
  EXPECT_EQ(back->start(NodeId(1)), Nanos{-1});
  EXPECT_EQ(back->duration(NodeId(1)), Nanos{0});
}

TEST(ChakraWriter, LeavesNoDanglingReference) {
  NodeSketch sketch;
  sketch.row.parent = 99;
  const NodeId node = sketch.Add(1, NodeKind::kOperator, Place::kHost);
  sketch.builder.AddDep(node, uint64_t{98}, DepKind::kData);
  const Trace trace = sketch.Finish();
  const Decoded clean = Decode(Write(trace));
  EXPECT_EQ(clean.nodes[0].ctrl_deps_size() + clean.nodes[0].data_deps_size(), 0);
  const Decoded verbatim = Decode(Write(trace, {.verbatim = true}));
  EXPECT_EQ(verbatim.nodes[0].ctrl_deps(0), 99u);
  EXPECT_EQ(verbatim.nodes[0].data_deps(0), 98u);
}

TEST(ChakraWriter, NumbersNodesWhoseIdsAreNotUnique) {
  NodeSketch sketch;
  sketch.Add(5, NodeKind::kOperator, Place::kHost);
  const NodeId second = sketch.Add(5, NodeKind::kOperator, Place::kHost);
  const NodeId third = sketch.Add(2, NodeKind::kOperator, Place::kHost);
  sketch.builder.AddDep(third, second, DepKind::kData);
  const Trace trace = sketch.Finish();
  std::string bytes;
  const auto report = WriteChakra(trace, {}, [&](std::string_view part) {
    bytes += part;
    return Status();
  });
  EXPECT_TRUE(report->renumbered);
  const Decoded decoded = Decode(bytes);
  EXPECT_EQ(decoded.nodes[2].id(), 2u);
  EXPECT_EQ(decoded.nodes[2].data_deps(0), 1u);
}

// --- Round trips of random traces ---

class RandomTrace {
 public:
  explicit RandomTrace(uint32_t seed) : random_(seed) {}

  Trace Make() {
    TraceInfo& info = builder_.info();
    info.schema = Maybe() ? "1.1.1-chakra.0.0.4" : "";
    info.time = Maybe() ? "2026-11-21 01:47:55" : "";
    info.pid = 4711;
    if (Maybe()) info.start_ts = Below(1000);
    if (Maybe()) info.rank = Below(8);
    if (Maybe()) info.world_size = 8;
    info.traits.exclusive_durations = Maybe();
    if (Maybe()) {
      builder_.AddProcessGroup({.name = builder_.Intern("3"),
                                .description = builder_.Intern("tensor \"parallel\""),
                                .ranks = builder_.InternInts(std::vector<int64_t>{0, 2}),
                                .size = 2});
    }
    const size_t count = 1 + static_cast<size_t>(Below(20));
    for (size_t i = 0; i < count; ++i) AddNode(i);
    return builder_.Finish().value();
  }

 private:
  int64_t Below(int64_t bound) { return static_cast<int64_t>(random_()) % bound; }
  bool Maybe() { return Below(2) == 0; }
  StringId Word() {
    static constexpr const char* kWords[] = {"aten::add", "it's",   "\"so\"",   "a\\b",
                                             "\n",        "\u00e9", "{'x': 1}", "0"};
    return builder_.Intern(kWords[Below(8)]);
  }
  int64_t AnyInt() {
    static constexpr int64_t kInts[] = {0, 1, -1, 127, 128, 1 << 20, INT32_MAX, INT64_MAX};
    return kInts[Below(8)];
  }
  int64_t Time() { return Below(2) == 0 ? Below(1'000'000) : 1000 * Below(1000); }

  Value MakeValue(int depth) {
    switch (Below(depth > 2 ? 8 : 9)) {
      case 0: return Value::None(builder_.Intern("None"));
      case 1: return Value::Bool(builder_.Intern("Bool"), Maybe());
      case 2: return Value::Int(builder_.Intern("Int"), AnyInt());
      case 3: {
        static constexpr double kDoubles[] = {0.0, -0.5, 1e-7, 1e300, 1.0 / 3};
        return Value::Double(builder_.Intern("Double"), kDoubles[Below(5)]);
      }
      case 4: return Value::Text(ValueKind::kString, builder_.Intern("String"), Word());
      case 5:
        return Value::Text(ValueKind::kDevice, builder_.Intern("Device"), builder_.Intern("cpu"));
      case 6:
        return Value::Text(ValueKind::kOpaque, builder_.Intern("Generator"),
                           builder_.Intern("<Generator>"));
      case 7: {
        const StringId type = builder_.Intern("Tensor(float)");
        TensorUse use;
        use.tensor = static_cast<uint64_t>(Below(100));
        use.storage = static_cast<uint64_t>(Below(100));
        use.numel = 6;
        use.element_bytes = 4;
        use.device = builder_.Intern("cuda:0");
        use.type = type;
        use.shape = builder_.InternInts(std::vector<int64_t>{2, 3});
        if (has_strides_) use.strides = builder_.InternInts(std::vector<int64_t>{3, 1});
        return Value::Tensor(type, builder_.InternTensor(use));
      }
      default: break;
    }
    std::vector<Value> elements;
    std::string type = "GenericList[";
    for (int64_t i = Below(3); i > 0; --i) {
      elements.push_back(MakeValue(depth + 1));
      if (elements.size() > 1) type += ",";
      type += builder_.text(elements.back().type);
    }
    return Value::List(builder_.Intern(type + "]"), builder_.InternValues(elements));
  }

  ValueListId MakeArguments() {
    if (Below(4) == 0) return ValueListId::None();
    // In the format, either all or none of a node's tensors have strides.
    has_strides_ = Maybe();
    std::vector<Value> values;
    for (int64_t i = Below(4); i > 0; --i) values.push_back(MakeValue(0));
    return builder_.InternValues(values);
  }

  void AddNode(size_t number) {
    NodeRow row;
    row.source_id = number * 3 + 1;
    row.kind = static_cast<NodeKind>(Below(static_cast<int64_t>(kNodeKindCount)));
    row.place = static_cast<Place>(Below(3));
    row.name = Word();
    if (number > 0 && Maybe()) row.parent = static_cast<uint64_t>(Below(int64_t(number)) * 3 + 1);
    if (Maybe()) row.start = Nanos{Time()};
    if (Maybe()) {
      const int64_t own = Time();
      if (builder_.info().traits.exclusive_durations) {
        row.duration = Nanos{own};
      } else {
        row.exclusive = Nanos{own};
        row.duration = Nanos{Maybe() ? own : own + Time()};
      }
    }
    row.inputs = MakeArguments();
    row.outputs = MakeArguments();
    if (Maybe()) row.rf_id = static_cast<uint64_t>(Below(1000));
    if (Maybe()) row.fw_parent = static_cast<uint64_t>(Below(1000));
    if (Maybe()) row.seq_id = AnyInt();
    if (Maybe()) row.scope = static_cast<uint8_t>(Below(256));
    if (Maybe()) row.tid = static_cast<uint64_t>(Below(9));
    if (Maybe()) row.fw_tid = static_cast<uint64_t>(Below(9));
    if (Maybe()) row.op_schema = Word();
    if (Below(4) == 0) row.kernel_backend = builder_.Intern("triton");
    if (Below(4) == 0) row.kernel_file = Word();
    if (Below(4) == 0) row.tensor_range = Word();
    if (Below(4) == 0) row.index_statistics = Word();
    if (Below(4) == 0) row.index_values = Word();
    if (Maybe()) row.correlation = AnyInt();
    if (Maybe()) row.external_id = AnyInt();
    Lane lane;
    if (row.place == Place::kHost && row.tid) {
      lane.process = builder_.Intern("4711");
      lane.thread = builder_.Intern(Maybe() ? std::to_string(*row.tid) : "9000");
    } else if (Maybe()) {
      lane.device = static_cast<int32_t>(Below(4));
      lane.stream = static_cast<int32_t>(1 + Below(4));
    }
    if (!(lane == Lane())) row.lane = builder_.InternLane(lane);
    const NodeId node = builder_.AddNode(row);
    for (int64_t i = number == 0 ? 0 : Below(4); i > 0; --i) {
      const NodeId dep = NodeId::FromIndex(static_cast<size_t>(Below(int64_t(number))));
      const auto kind = static_cast<DepKind>(Below(3));
      // A dependency that is both data and sync occurs once in the format.
      if (!deps_.emplace(node.value(), dep.value()).second) continue;
      builder_.AddDep(node, dep, kind);
    }
    if (Maybe()) {
      builder_.SetComm(node, {.type = static_cast<CollectiveType>(Below(11)),
                              .name = Word(),
                              .group = builder_.Intern("5"),
                              .dtype = static_cast<DType>(1 + Below(10)),
                              .bytes = Bytes{Below(1 << 20)},
                              .in_elements = Below(1 << 20),
                              .in_split = builder_.InternInts(std::vector<int64_t>{1, 2}),
                              .src = Below(8),
                              .group_size = 8});
    }
    if (Maybe()) {
      builder_.AddExtra(node,
                        {.key = builder_.Intern("grid"), .text = builder_.Intern("[1, 2, 3]")});
    }
  }

  std::mt19937 random_;
  TraceBuilder builder_;
  std::set<std::pair<uint32_t, uint32_t>> deps_;
  bool has_strides_ = false;
};

RC_GTEST_PROP(Chakra, TracesComeBackAsTheyWent, (uint32_t seed)) {
  const Trace trace = RandomTrace(seed).Make();
  const std::string bytes = Write(trace);
  RC_ASSERT(bytes == Write(trace));
  const auto back = ReadChakra(bytes, {.strict = true}, 1 + seed % 97);
  RC_ASSERT(back.has_value());
  RC_ASSERT(testing_dump::NodeTexts(*back) == testing_dump::NodeTexts(trace));
  RC_ASSERT(testing_dump::GroupsText(*back) == testing_dump::GroupsText(trace));
  RC_ASSERT(Write(*back) == bytes);
  RC_ASSERT(Decode(bytes).nodes.size() == trace.node_count());
}

RC_GTEST_PROP(Chakra, DamagedFilesDoNoHarm, (uint32_t seed)) {
  std::string bytes = Write(RandomTrace(seed).Make());
  std::mt19937 random(seed);
  for (int i = 0; i < 20; ++i) {
    std::string damaged = bytes;
    for (int k = 0; k < 3; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    damaged.resize(random() % (damaged.size() + 1));
    const auto trace = ReadChakra(damaged, {}, 1 + random() % 50);
    if (trace.has_value()) Write(*trace, {.verbatim = true});
  }
}

std::string_view TypeName(chakra::ValueType type) {
  switch (type) {
    case chakra::ValueType::kInt32: return "int32";
    case chakra::ValueType::kInt64: return "int64";
    case chakra::ValueType::kInt64List: return "int64 list";
    case chakra::ValueType::kUint64: return "uint64";
    case chakra::ValueType::kUint64List: return "uint64 list";
    case chakra::ValueType::kBool: return "bool";
    case chakra::ValueType::kString: return "string";
    default: return "?";
  }
}

TEST(ChakraSchema, IsWhatTheDocumentSays) {
  std::ifstream file(ETUDE_TEST_DATA "/../../docs/formats/chakra.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(page.empty());
  const auto check = [&](std::string_view name, chakra::ValueType type, std::string_view help) {
    const std::string row = "| `" + std::string(name) + "` | " + std::string(TypeName(type)) +
                            " | " + std::string(help) + " |";
    EXPECT_NE(page.find(row), std::string::npos) << row;
  };
  for (const auto& row : chakra::kAttrs) check(row.name, row.type, row.help);
  for (const auto& row : chakra::kGlobalAttrs) check(row.name, row.type, row.help);
  for (const auto& row : chakra::kNodeTypes) {
    const std::string text = std::to_string(row.number) + " " + std::string(row.name);
    EXPECT_NE(page.find(text), std::string::npos) << text;
  }
}

TEST(ChakraSchema, TablesAreInTheOrderOfTheirEnumerations) {
  for (size_t i = 0; i < chakra::kAttrCount; ++i) {
    EXPECT_EQ(chakra::kAttrs[i].attr, static_cast<chakra::Attr>(i));
  }
  for (size_t i = 0; i < chakra::kGlobalAttrCount; ++i) {
    EXPECT_EQ(chakra::kGlobalAttrs[i].attr, static_cast<chakra::GlobalAttr>(i));
  }
  for (const auto& row : chakra::kNodeTypes) {
    if (row.number > 7) continue;  // proposed
    EXPECT_EQ(pb::NodeType_Name(static_cast<pb::NodeType>(row.number)), row.name);
  }
  for (const auto& row : chakra::kCommTypes) {
    EXPECT_EQ(pb::CollectiveCommType_Name(static_cast<pb::CollectiveCommType>(row.number)),
              row.name);
  }
}

}  // namespace
}  // namespace etude
