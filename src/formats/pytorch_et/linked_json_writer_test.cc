#include "src/formats/pytorch_et/linked_json_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/formats/pytorch_et/et_json_reader.h"
#include "src/formats/read_trace.h"
#include "src/formats/test_support.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

struct Written {
  LinkedWriteReport report;
  std::string text;
  nlohmann::json json;
  std::vector<nlohmann::json> nodes;
};

Written WriteLinked(const Trace& trace) {
  Written written;
  const auto report = WriteLinkedJson(trace, [&](std::string_view part) {
    written.text += part;
    return Status();
  });
  EXPECT_TRUE(report.has_value());
  written.report = *report;
  written.json = nlohmann::json::parse(written.text);
  for (const auto& node : written.json["nodes"]) written.nodes.push_back(node);
  return written;
}

class LinkedJsonWriter : public testing::Test {
 protected:
  NodeId Add(uint64_t id, NodeKind kind, Place place, std::string_view name) {
    row_.source_id = id;
    row_.kind = kind;
    row_.place = place;
    row_.name = builder_.Intern(name);
    const NodeId node = builder_.AddNode(row_);
    row_ = NodeRow();
    return node;
  }
  Written Finish() { return WriteLinked(builder_.Finish().value()); }

  TraceBuilder builder_;
  NodeRow row_;
};

TEST_F(LinkedJsonWriter, PythonNumbersThatBecameTensorsAreReadAgain) {
  const StringId type = builder_.Intern("Tensor(double)");
  const auto tensor = [&](uint64_t id, ValueKind kind, uint64_t number) {
    return Value::Tensor(type, builder_.InternTensor({.tensor = id,
                                                      .storage = id,
                                                      .numel = 1,
                                                      .element_bytes = 8,
                                                      .device = builder_.Intern("cpu"),
                                                      .type = type,
                                                      .shape = builder_.InternInts({}),
                                                      .number_kind = kind,
                                                      .number = number}));
  };
  const std::vector<Value> inner = {tensor(3, ValueKind::kInt, static_cast<uint64_t>(-7))};
  const std::vector<Value> inputs = {
      tensor(1, ValueKind::kNone, 0), tensor(2, ValueKind::kDouble, std::bit_cast<uint64_t>(-0.5)),
      Value::List(builder_.Intern("GenericList[Tensor(double)]"), builder_.InternValues(inner))};
  row_.inputs = builder_.InternValues(inputs);
  Add(10, NodeKind::kOperator, Place::kHost, "aten::mul");
  const Written written = Finish();
  EXPECT_EQ(written.nodes[0]["inputs"]["etude_numbers"].size(), 3u);
  EXPECT_FALSE(written.nodes[0]["outputs"].contains("etude_numbers"));
  const Trace trace = testing_support::ReadWith(MakeEtJsonReader, written.text).value();
  const auto read = trace.inputs(trace.Find(10));
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(trace.tensor(read[0].as_tensor()).number_kind, ValueKind::kNone);
  EXPECT_EQ(trace.tensor(read[1].as_tensor()).number_kind, ValueKind::kDouble);
  EXPECT_EQ(std::bit_cast<double>(trace.tensor(read[1].as_tensor()).number), -0.5);
  const TensorUse& nested = trace.tensor(trace.values(read[2].as_list())[0].as_tensor());
  EXPECT_EQ(nested.number_kind, ValueKind::kInt);
  EXPECT_EQ(static_cast<int64_t>(nested.number), -7);
  EXPECT_TRUE(trace.extras(trace.Find(10)).empty());
}

TEST_F(LinkedJsonWriter, WritesTheKeysThatToolsRead) {
  builder_.info().schema = "1.0.2-chakra.0.0.4";
  builder_.info().pid = 7;
  builder_.info().time = "2026-11-21 00:00:00";
  builder_.info().start_ts = 1;
  builder_.info().finish_ts = 2;
  Add(1, NodeKind::kProcess, Place::kHost, "[pytorch|profiler|execution_trace|process]");
  row_.parent = 1;
  row_.rf_id = 5;
  row_.fw_parent = 0;
  row_.seq_id = -1;
  row_.scope = 0;
  row_.tid = 1;
  row_.fw_tid = 0;
  row_.op_schema = builder_.Intern("aten::add(Tensor a) -> Tensor");
  row_.start = Nanos{1234567};
  row_.duration = Nanos{2000};
  row_.exclusive = Nanos{1500};
  Add(2, NodeKind::kOperator, Place::kHost, "aten::add");
  row_.parent = 2;
  row_.start = Nanos{3000001};
  row_.duration = Nanos{10};
  row_.exclusive = Nanos{10};
  row_.correlation = 44;
  row_.lane = builder_.InternLane({.device = 3, .stream = 7});
  const NodeId kernel = Add(3, NodeKind::kKernel, Place::kDevice, "add_kernel");
  builder_.AddDep(kernel, uint64_t{1}, DepKind::kSync);
  const Written written = Finish();
  for (const char* key : {"schema", "pid", "time", "start_ts", "finish_ts"}) {
    EXPECT_TRUE(written.json.contains(key)) << key;
  }
  EXPECT_EQ(written.nodes[0]["ctrl_deps"], 1) << "the process root calls itself";
  EXPECT_NE(written.text.find("\"inclusive_dur\": 2, \"exclusive_dur\": 1.5, \"ts\": 1234.567,"),
            std::string::npos)
      << "exact microseconds";
  const auto& node = written.nodes[2];
  EXPECT_EQ(node["cat"], "kernel");
  EXPECT_EQ(node["ph"], "X");
  EXPECT_EQ(node["stream"], 7);
  EXPECT_EQ(node["device"], 3);
  EXPECT_EQ(node["correlation"], 44);
  EXPECT_EQ(node["ctrl_deps"], 2);
  EXPECT_EQ(node["sync_dep"], nlohmann::json::array({1}));
  EXPECT_EQ(node["ts"], 3000.001);
  ASSERT_EQ(node["attrs"].size(), 7u) << "those of its operator";
  EXPECT_EQ(node["attrs"][0]["value"], 5);
}

TEST_F(LinkedJsonWriter, WritesArgumentsAsTheObserverDoes) {
  const StringId tensor_type = builder_.Intern("Tensor(float)");
  const TensorUse use{.tensor = 1,
                      .storage = 2,
                      .numel = 6,
                      .element_bytes = 4,
                      .device = builder_.Intern("cpu"),
                      .type = tensor_type,
                      .shape = builder_.InternInts(std::vector<int64_t>{2, 3})};
  const Value tensor = Value::Tensor(tensor_type, builder_.InternTensor(use));
  const Value number = Value::Int(builder_.Intern("Int"), 4);
  const std::vector<Value> elements = {tensor, number};
  const std::vector<Value> values = {
      Value::List(builder_.Intern("GenericList[Tensor(float),Int]"),
                  builder_.InternValues(elements)),
      Value::Double(builder_.Intern("Double"), 0.5),
      Value::Bool(builder_.Intern("Bool"), true),
      Value::None(builder_.Intern("None")),
      Value::Double(builder_.Intern("Double"), HUGE_VAL),
      Value::Text(ValueKind::kString, builder_.Intern("String"), builder_.Intern("a\"b")),
  };
  row_.inputs = builder_.InternValues(values);
  Add(1, NodeKind::kOperator, Place::kHost, "op");
  const Written written = Finish();
  EXPECT_EQ(
      written.nodes[0]["inputs"].dump(),
      R"({"shapes":[[[2,3],[]],[],[],[],[],[]],)"
      R"("types":["GenericList[Tensor(float),Int]","Double","Bool","None","Double","String"],)"
      R"("values":[[[1,2,0,6,4,"cpu"],4],0.5,true,"<None>","inf","a\"b"]})");
}

// Kinds without a name or category in the profiler, as in traces of simulators.
TEST_F(LinkedJsonWriter, KeepsKindsAndFactsOfChakraNodes) {
  builder_.info().traits.exclusive_durations = true;
  row_.duration = Nanos{5000};
  const NodeId reduce = Add(1, NodeKind::kCollective, Place::kDevice, "ar_1");
  builder_.SetComm(reduce, {.type = CollectiveType::kAllReduce, .bytes = Bytes{64}});
  const NodeId send = Add(2, NodeKind::kSend, Place::kUnknown, "to 3");
  builder_.SetComm(send, {.bytes = Bytes{32}, .dst = 3});
  Add(3, NodeKind::kCompute, Place::kDevice, "mm");
  Add(4, NodeKind::kMemLoad, Place::kHost, "weights");
  Add(5, NodeKind::kMetadata, Place::kHost, "facts");

  const Trace read = testing_support::ReadWith(MakeEtJsonReader, Finish().text).value();
  std::vector<NodeKind> kinds;
  ForEachNode(read, [&](NodeId node) { kinds.push_back(read.kind(node)); });
  EXPECT_EQ(kinds,
            (std::vector<NodeKind>{NodeKind::kCollective, NodeKind::kSend, NodeKind::kCompute,
                                   NodeKind::kMemLoad, NodeKind::kMetadata}));
  const Comm* comm = read.comm(NodeId(0));
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(comm->type, CollectiveType::kAllReduce);
  EXPECT_EQ(comm->bytes, Bytes{64});
  ASSERT_NE(read.comm(NodeId(1)), nullptr);
  EXPECT_EQ(read.comm(NodeId(1))->bytes, Bytes{32});
  EXPECT_EQ(read.comm(NodeId(1))->dst, 3);
  EXPECT_EQ(read.duration(NodeId(0)), Nanos{5000});
  EXPECT_EQ(read.exclusive(NodeId(0)), Nanos{5000});
}

// Process groups and reductions must not come back as text of unexpected form, nor labels without
// their groups, of which the capture has three.
TEST(LinkedJsonRoundTrip, CommunicationOfANativeCapture) {
  const Trace trace = ReadTrace(ETUDE_TEST_DATA "/groups/capture.0.etude", {}, {}).value();
  const Written written = WriteLinked(trace);
  const Trace again = testing_support::ReadWith(MakeEtJsonReader, written.text).value();
  EXPECT_EQ(again.stats()[Stat::kUnknownValue], 0u);
  ASSERT_EQ(again.process_groups().size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const ProcessGroup& group = again.process_groups()[i];
    const ProcessGroup& recorded = trace.process_groups()[i];
    EXPECT_EQ(again.text(group.name), trace.text(recorded.name));
    EXPECT_EQ(group.size, recorded.size);
    EXPECT_EQ(group.ranks.is_none(), recorded.ranks.is_none());
    EXPECT_TRUE(std::ranges::equal(again.ints(group.ranks), trace.ints(recorded.ranks)));
  }
  size_t communications = 0;
  size_t things = 0;
  ForEachNode(trace, [&](NodeId node) {
    const NodeId other = again.Find(trace.source_id(node));
    const auto values = trace.inputs(node);
    const auto read = again.inputs(other);
    ASSERT_EQ(values.size(), read.size());
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(read[i].kind, values[i].kind);
      if (values[i].kind != ValueKind::kOpaque) continue;
      ++things;
      EXPECT_EQ(again.text(read[i].as_text()), trace.text(values[i].as_text()));
    }
    const Comm* comm = trace.comm(node);
    ASSERT_EQ(comm == nullptr, again.comm(other) == nullptr) << trace.name(node);
    if (comm == nullptr) return;
    ++communications;
    EXPECT_EQ(again.kind(other), trace.kind(node));
    // String ids differ between traces.
    Comm same = *again.comm(other);
    EXPECT_EQ(again.text(same.name), trace.text(comm->name));
    EXPECT_EQ(again.text(same.group), trace.text(comm->group));
    same.name = comm->name;
    same.group = comm->group;
    EXPECT_EQ(same, *comm);
  });
  EXPECT_EQ(communications, 20u);
  EXPECT_GT(things, 20u);
}

TEST_F(LinkedJsonWriter, RenamesExtrasThatReadersWouldMistake) {
  const NodeId node = Add(1, NodeKind::kOperator, Place::kHost, "op");
  builder_.AddExtra(node, {.key = builder_.Intern("grid"), .text = builder_.Intern("[1,2,3]")});
  builder_.AddExtra(node, {.key = builder_.Intern("scope"), .text = builder_.Intern("\"mine\"")});
  builder_.AddExtra(node,
                    {.key = builder_.Intern(kEtKindAttr), .text = builder_.Intern("\"kernel\"")});
  builder_.AddExtra(
      node, {.key = builder_.Intern("attrs/pg_desc"),
             .text = builder_.Intern(R"({"name":"pg_desc","type":"string","value":"default"})")});
  const Written written = Finish();
  EXPECT_EQ(written.nodes[0]["grid"].dump(), "[1,2,3]");
  EXPECT_EQ(written.nodes[0]["args/scope"], "mine");
  EXPECT_FALSE(written.nodes[0].contains("scope"));
  EXPECT_EQ(written.nodes[0]["args/etude_kind"], "kernel");
  EXPECT_EQ(written.nodes[0]["attrs"][0]["value"], "default");
}

TEST_F(LinkedJsonWriter, CountsWhatItCannotSay) {
  const NodeId a = Add(1, NodeKind::kOperator, Place::kHost, "a");
  const NodeId b = Add(1, NodeKind::kOperator, Place::kHost, "b");
  builder_.AddDep(b, a, DepKind::kControl);
  builder_.AddExtra(a, {.key = builder_.Intern("field 11"),
                        .text = builder_.Intern(std::string_view("\x5A\x01\x61", 3)),
                        .form = Extra::Form::kProtobuf});
  const Written written = Finish();
  EXPECT_TRUE(written.report.renumbered);
  EXPECT_EQ(written.report.lost_edges, 1u) << "b has no caller: a would be taken for it";
  EXPECT_EQ(written.report.lost_extras, 1u);
  EXPECT_EQ(written.nodes[1]["id"], 1);
}

TEST_F(LinkedJsonWriter, WritesAttributesOfChakraNodes) {
  const NodeId node = Add(1, NodeKind::kCompute, Place::kUnknown, "a");
  // AttributeProto {name: "num_ops", int64_val: 300} as field 10.
  builder_.AddExtra(
      node, {.key = builder_.Intern("num_ops"),
             .text = builder_.Intern(std::string_view("\x52\x0C\x0A\x07num_ops\x48\xAC\x02", 14)),
             .form = Extra::Form::kProtobuf});
  const Written written = Finish();
  EXPECT_EQ(written.nodes[0]["attrs"][1].dump(),
            R"({"name":"num_ops","type":"int64","value":300})");
}

}  // namespace
}  // namespace etude
