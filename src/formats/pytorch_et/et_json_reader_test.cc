#include "src/formats/pytorch_et/et_json_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "src/formats/test_support.h"

namespace etude {
namespace {

using testing_support::DataText;
using testing_support::ReadWith;

Result<Trace> ReadEt(std::string_view text, size_t chunk = 1 << 20, const ReadOptions& options = {},
                     const RunContext& context = {}) {
  return ReadWith(MakeEtJsonReader, text, chunk, options, context);
}

std::string Document(std::string_view nodes) {
  return R"J({"schema":"1.1.1-chakra.0.0.4","pid":42,"time":"now","start_ts":5,"nodes":[)J" +
         std::string(nodes) + R"J(],"finish_ts":9,"more":{"a":1}})J";
}

// Returns a node with these inputs: values, shapes, types and strides.
std::string WithInputs(std::string_view values, std::string_view types,
                       std::string_view shapes = "[]", std::string_view strides = "[]") {
  return Document(R"J({"id":5,"name":"op","ctrl_deps":1,"inputs":{"values":)J" +
                  std::string(values) + R"J(,"shapes":)J" + std::string(shapes) + R"J(,"types":)J" +
                  std::string(types) + R"J(,"strides":)J" + std::string(strides) + "}}");
}

std::vector<int64_t> Ints(const Trace& trace, IntListId list) {
  return {trace.ints(list).begin(), trace.ints(list).end()};
}

constexpr NodeId kFirst{0};

TEST(EtJsonReader, ReadsTheDocumentsFacts) {
  const Trace trace = ReadEt(Document("")).value();
  const TraceInfo& info = trace.info();
  EXPECT_EQ(info.format, TraceFormat::kPyTorchEt);
  EXPECT_EQ(info.schema, "1.1.1-chakra.0.0.4");
  EXPECT_EQ(info.time, "now");
  EXPECT_EQ(info.pid, 42);
  EXPECT_EQ(info.start_ts, 5);
  EXPECT_EQ(info.finish_ts, 9);
  ASSERT_EQ(info.extras.size(), 1u);
  EXPECT_EQ(trace.text(info.extras[0].key), "more");
  EXPECT_EQ(trace.text(info.extras[0].text), R"J({"a":1})J");
}

TEST(EtJsonReader, ReadsNestedNodes) {
  const Trace trace =
      ReadEt(
          Document(
              R"J({"id":2,"name":"[pytorch|profiler|execution_trace|thread]","ctrl_deps":1,"attrs":[]},
        {"id":7,"name":"aten::mm","ctrl_deps":2,"inputs":{"values":[],"shapes":[],"types":[]},
         "attrs":[{"name":"rf_id","type":"uint64","value":11},{"name":"fw_parent","type":"uint64","value":3},
                  {"name":"seq_id","type":"int64","value":-1},{"name":"scope","type":"uint64","value":1},
                  {"name":"tid","type":"uint64","value":2},{"name":"fw_tid","type":"uint64","value":4},
                  {"name":"op_schema","type":"string","value":"aten::mm(Tensor a) -> Tensor"},
                  {"name":"kernel_file","type":"string","value":""},
                  {"name":"tensor_range","type":"string","value":"{\"0\":[1,2]}"},
                  {"name":"new","type":"double","value":1.5}],"key":[true]},
        {"id":1,"name":"[pytorch|profiler|execution_trace|process]","ctrl_deps":1,"attrs":[]})J"))
          .value();
  ASSERT_EQ(trace.node_count(), 3u);
  EXPECT_EQ(trace.kind(NodeId(0)), NodeKind::kThread);
  EXPECT_EQ(trace.kind(NodeId(2)), NodeKind::kProcess);
  EXPECT_TRUE(trace.parent(NodeId(2)).is_none()) << "the root is no child of itself";
  EXPECT_EQ(trace.parent(NodeId(0)), NodeId(2));
  const NodeId op(1);
  EXPECT_EQ(trace.kind(op), NodeKind::kOperator);
  EXPECT_EQ(trace.place(op), Place::kHost);
  EXPECT_EQ(trace.source_id(op), 7u);
  EXPECT_EQ(trace.parent(op), NodeId(0));
  EXPECT_EQ(trace.rf_id(op), 11u);
  EXPECT_EQ(trace.fw_parent(op), 3u);
  EXPECT_EQ(trace.seq_id(op), -1);
  EXPECT_EQ(trace.scope(op), 1);
  EXPECT_EQ(trace.tid(op), 2u);
  EXPECT_EQ(trace.fw_tid(op), 4u);
  EXPECT_EQ(trace.text(trace.op_schema(op)), "aten::mm(Tensor a) -> Tensor");
  EXPECT_TRUE(trace.kernel_file(op).is_none()) << "\"\" says nothing";
  EXPECT_EQ(trace.text(trace.tensor_range(op)), R"J({"0":[1,2]})J");
  const Lane& lane = trace.lane(trace.lane_id(op));
  EXPECT_EQ(trace.text(lane.process), "42");
  EXPECT_EQ(trace.text(lane.thread), "2");
  ASSERT_EQ(trace.extras(op).size(), 2u);
  EXPECT_EQ(trace.text(trace.extras(op)[0].key), "attrs/new");
  EXPECT_EQ(trace.text(trace.extras(op)[0].text),
            R"J({"name":"new","type":"double","value":1.5})J");
  EXPECT_EQ(trace.text(trace.extras(op)[1].key), "key");
  EXPECT_EQ(trace.text(trace.extras(op)[1].text), "[true]");
}

TEST(EtJsonReader, ReadsFlatNodes) {
  const Trace trace =
      ReadEt(
          R"J({"schema":"1.0.1","nodes":[{"name":"aten::add","id":3,"rf_id":1,"parent":1,"fw_parent":0,
      "seq_id":5,"scope":0,"tid":1,"fw_tid":0,"op_schema":"aten::add()","inputs":[[4,5,6,1,4,"cuda:0"],2],
      "input_shapes":[[1,1],[]],"input_types":["Tensor(float)","Int"],"outputs":[true],"output_shapes":[[]],
      "output_types":["Bool"]},{"name":"[pytorch|profiler|execution_graph|process]","id":1,"parent":1}]
})J")
          .value();
  EXPECT_EQ(trace.kind(kFirst), NodeKind::kOperator);
  EXPECT_EQ(trace.kind(NodeId(1)), NodeKind::kProcess);
  EXPECT_EQ(trace.parent(kFirst), NodeId(1));
  ASSERT_EQ(trace.inputs(kFirst).size(), 2u);
  const TensorUse& use = trace.tensor(trace.inputs(kFirst)[0].as_tensor());
  EXPECT_EQ(use.tensor, 4u);
  EXPECT_EQ(use.storage, 5u);
  EXPECT_EQ(use.offset, 6);
  EXPECT_EQ(trace.text(use.device), "cuda:0");
  EXPECT_EQ(Ints(trace, use.shape), (std::vector<int64_t>{1, 1}));
  EXPECT_TRUE(use.strides.is_none());
  EXPECT_EQ(trace.inputs(kFirst)[1].as_int(), 2);
  EXPECT_TRUE(trace.outputs(kFirst)[0].as_bool());
}

TEST(EtJsonReader, ReadsValuesOfEveryKind) {
  const Trace trace =
      ReadEt(
          WithInputs(
              R"J([1,-9223372036854775808,0.5,3,"inf","-inf","nan",true,"<None>","cuda:1","<x>","<Generator>",
             "<ComplexDouble>",null])J",
              R"J(["Int","Int","Double","Double","Double","Double","Double","Bool","None","Device","String",
             "Generator","ComplexDouble","None"])J"))
          .value();
  const auto inputs = trace.inputs(kFirst);
  ASSERT_EQ(inputs.size(), 14u);
  EXPECT_EQ(inputs[0].as_int(), 1);
  EXPECT_EQ(inputs[1].as_int(), INT64_MIN);
  EXPECT_EQ(inputs[2].as_double(), 0.5);
  EXPECT_EQ(inputs[3].as_double(), 3.0);
  EXPECT_EQ(inputs[4].as_double(), HUGE_VAL);
  EXPECT_EQ(inputs[5].as_double(), -HUGE_VAL);
  EXPECT_TRUE(std::isnan(inputs[6].as_double()));
  EXPECT_TRUE(inputs[7].as_bool());
  EXPECT_EQ(inputs[8].kind, ValueKind::kNone);
  EXPECT_EQ(inputs[9].kind, ValueKind::kDevice);
  EXPECT_EQ(inputs[10].kind, ValueKind::kString);
  EXPECT_EQ(inputs[11].kind, ValueKind::kOpaque);
  EXPECT_EQ(inputs[12].kind, ValueKind::kOpaque);
  EXPECT_EQ(trace.text(inputs[12].as_text()), "<ComplexDouble>");
  EXPECT_EQ(inputs[13].kind, ValueKind::kNone);
  EXPECT_EQ(trace.text(inputs[2].type), "Double");
  EXPECT_EQ(trace.stats()[Stat::kUnknownValue], 0u);
  EXPECT_EQ(trace.stats()[Stat::kNonFiniteNumber], 0u) << "named, not bare";
}

TEST(EtJsonReader, AttachesShapesInsideNestedLists) {
  const Trace trace =
      ReadEt(
          WithInputs(
              R"J([[[[1,2,0,6,4,"cpu"],"<None>"],[[3,4,0,1,8,"cpu"]]],[7,8]])J",
              R"J(["GenericList[GenericList[Tensor(float),None],GenericList[Tensor(c10::complex<float>)]]",
             "GenericList[Int,Int]"])J",
              "[[[[2,3],[]],[[1]]],[[],[]]]", "[[[[3,1],[]],[[1]]],[[],[]]]"))
          .value();
  const auto outer = trace.values(trace.inputs(kFirst)[0].as_list());
  ASSERT_EQ(outer.size(), 2u);
  EXPECT_EQ(trace.text(outer[0].type), "GenericList[Tensor(float),None]");
  const auto inner = trace.values(outer[0].as_list());
  const TensorUse& use = trace.tensor(inner[0].as_tensor());
  EXPECT_EQ(Ints(trace, use.shape), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(Ints(trace, use.strides), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(inner[1].kind, ValueKind::kNone);
  const TensorUse& other = trace.tensor(trace.values(outer[1].as_list())[0].as_tensor());
  EXPECT_EQ(trace.text(other.type), "Tensor(c10::complex<float>)");
  EXPECT_EQ(Ints(trace, other.shape), (std::vector<int64_t>{1}));
  EXPECT_EQ(trace.values(trace.inputs(kFirst)[1].as_list())[1].as_int(), 8);
  EXPECT_EQ(trace.stats()[Stat::kUnknownValue], 0u);
}

TEST(EtJsonReader, KeepsUnforeseenValuesAsText) {
  const Trace trace =
      ReadEt(WithInputs(
                 R"J([{"a":[1]},18446744073709551616,1e999,[1,2],"x",true,NaN,[1,"b"],"q\"r"])J",
                 R"J(["Dict","Int","Double","Tensor(float)","Int","Int","Double"])J"))
          .value();
  const auto inputs = trace.inputs(kFirst);
  ASSERT_EQ(inputs.size(), 9u);
  const auto raw = [&](size_t i) {
    EXPECT_EQ(inputs[i].kind, ValueKind::kRaw) << i;
    return trace.text(inputs[i].as_text());
  };
  EXPECT_EQ(raw(0), R"J({"a":[1]})J");
  EXPECT_EQ(raw(1), "18446744073709551616");
  EXPECT_EQ(raw(2), "1e999");
  EXPECT_EQ(raw(3), "[1,2]");
  EXPECT_EQ(raw(4), "\"x\"");
  EXPECT_EQ(raw(5), "true");
  EXPECT_TRUE(std::isnan(inputs[6].as_double())) << "bare NaN is counted";
  EXPECT_EQ(inputs[7].kind, ValueKind::kList) << "no types: by form";
  EXPECT_EQ(trace.text(inputs[8].as_text()), "q\"r");
  EXPECT_EQ(trace.stats()[Stat::kUnknownValue], 6u);
  EXPECT_EQ(trace.stats()[Stat::kNonFiniteNumber], 2u);
}

std::string CommNode(std::string_view values, std::string_view types, std::string_view attrs = "") {
  return R"J({"id":9,"name":"record_param_comms","ctrl_deps":1,"inputs":{"values":)J" +
         std::string(values) + R"J(,"shapes":[],"types":)J" + std::string(types) +
         R"J(},"outputs":{"values":[[6,7,0,16,4,"cuda:0"]],"types":["Tensor(float)"]},"attrs":[)J" +
         std::string(attrs) + "]}";
}

TEST(EtJsonReader, ReadsCollectivesFromAttributes) {
  const Trace trace =
      ReadEt(Document(CommNode("[]", "[]",
                               R"J({"name":"collective_name","type":"string","value":"allreduce"},
      {"name":"dtype","type":"string","value":"Float"},{"name":"in_msg_nelems","type":"uint64","value":8},
      {"name":"out_msg_nelems","type":"uint64","value":8},{"name":"in_split_size","type":"string","value":"[]"},
      {"name":"out_split_size","type":"string","value":"[1, 2]"},{"name":"pg_name","type":"string","value":"3"},
      {"name":"pg_desc","type":"string","value":"tp"},{"name":"pg_size","type":"uint64","value":2},
      {"name":"global_rank_start","type":"uint64","value":4},{"name":"global_rank_stride","type":"uint64","value":2})J")))
          .value();
  EXPECT_EQ(trace.kind(kFirst), NodeKind::kCollective);
  const struct Comm* comm = trace.comm(kFirst);
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(comm->type, CollectiveType::kAllReduce);
  EXPECT_EQ(trace.text(comm->name), "allreduce");
  EXPECT_EQ(trace.text(comm->group), "3");
  EXPECT_EQ(comm->dtype, DType::kFloat32);
  EXPECT_EQ(comm->bytes, Bytes{32});
  EXPECT_TRUE(comm->in_split.is_none());
  EXPECT_EQ(Ints(trace, comm->out_split), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(comm->group_size, 2);
  ASSERT_EQ(trace.process_groups().size(), 1u);
  EXPECT_EQ(trace.text(trace.process_groups()[0].description), "tp");
  EXPECT_EQ(Ints(trace, trace.process_groups()[0].ranks), (std::vector<int64_t>{4, 6}));
  EXPECT_EQ(trace.extras(kFirst).size(), 3u) << "description, start and stride stay with the node";
}

TEST(EtJsonReader, ReadsCollectivesFromPositions) {
  // 1.0.3 and later: (name, description), then first rank, stride and size after the splits.
  Trace trace =
      ReadEt(
          Document(CommNode(
              R"J([[[4,5,0,8,4,"cuda:0"]],[3,false],["0","default_pg"],1,"broadcast",[],[],0,1,2])J",
              R"J(["GenericList[Tensor(float)]","Tuple[Int,Bool]","Tuple[String,String]","Int","String",
             "GenericList[]","GenericList[]","Int","Int","Int"])J")))
          .value();
  const struct Comm* comm = trace.comm(kFirst);
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(comm->type, CollectiveType::kBroadcast);
  EXPECT_EQ(trace.text(comm->group), "0");
  EXPECT_EQ(comm->root, 1);
  EXPECT_EQ(comm->in_elements, 8);
  EXPECT_EQ(comm->out_elements, 16);
  EXPECT_EQ(comm->group_size, 2);

  // 1.0.2: the group is a number, defined by the group's own node, here afterwards.
  trace =
      ReadEt(
          Document(CommNode(R"J([[4,5,0,8,4,"cuda:0"],3,77,0,"all_to_allv",[4,4],[6,2],2])J",
                            R"J(["Tensor(float)","Int","Int","Int","String","GenericList[Int,Int]",
                           "GenericList[Int,Int]","Int"])J") +
                   R"J(,{"id":10,"name":"## process_group:init ##","ctrl_deps":1,"inputs":{"values":
             ["[{\"pg_name\": \"g\", \"backend_id\": 77, \"backend_config\": \"cuda:nccl\", \"ranks\": [], \"group_size\": 2}]"],
             "types":["String"]}})J"))
          .value();
  comm = trace.comm(kFirst);
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(comm->type, CollectiveType::kAllToAll);
  EXPECT_EQ(trace.text(comm->group), "g");
  EXPECT_EQ(comm->root, std::nullopt);
  EXPECT_EQ(Ints(trace, comm->in_split), (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(comm->group_size, 2);
  EXPECT_EQ(trace.kind(NodeId(1)), NodeKind::kMetadata);
  EXPECT_FALSE(trace.process_groups()[0].ranks.is_none()) << "an empty list: all ranks";

  // Without tensors, and point to point.
  trace = ReadEt(Document(
                     CommNode(R"J([3,77,0,"wait",[],[]])J",
                              R"J(["Int","Int","Int","String","GenericList[]","GenericList[]"])J")))
              .value();
  EXPECT_EQ(trace.kind(kFirst), NodeKind::kSync);
  EXPECT_EQ(trace.comm(kFirst)->in_elements, std::nullopt);
  trace = ReadEt(Document(CommNode(
                     R"J([[4,5,0,8,4,"cuda:0"],3,["1",""],5,"send",[],[]])J",
                     R"J(["Tensor(float)","Int","Tuple[String,String]","Int","String"])J")))
              .value();
  EXPECT_EQ(trace.kind(kFirst), NodeKind::kSend);
  EXPECT_EQ(trace.comm(kFirst)->dst, std::nullopt) << "a rank of a group of unknown ranks";
}

TEST(EtJsonReader, PeersAreRanksOfTheJob) {
  const auto message = [](std::string_view name, std::string_view rest = "",
                          std::string_view types = "", std::string_view attrs = "") {
    return CommNode(
        R"J([[4,5,0,8,4,"cuda:0"],3,["1",""],1,")J" + std::string(name) + R"J(",[],[])J" +
            std::string(rest) + "]",
        R"J(["Tensor(float)","Int","Tuple[String,String]","Int","String","GenericList[]","GenericList[]")J" +
            std::string(types) + "]",
        attrs);
  };
  const std::string groups =
      R"J(,{"id":10,"name":"## process_group:init ##","ctrl_deps":1,"inputs":{"values":
      ["[{\"pg_name\": \"1\", \"ranks\": [3, 5, 4], \"group_size\": 3}]"],"types":["String"]}})J";

  // Ranks of the group, which may come later.
  Trace trace = ReadEt(Document(message("send") + groups)).value();
  EXPECT_EQ(trace.comm(kFirst)->dst, 5);
  EXPECT_EQ(trace.comm(kFirst)->src, std::nullopt);
  trace = ReadEt(Document(message("recv") + groups)).value();
  EXPECT_EQ(trace.comm(kFirst)->src, 5);
  EXPECT_EQ(trace.comm(kFirst)->dst, std::nullopt);
  // By first rank, stride and size.
  trace = ReadEt(Document(message("send", ",4,2,2", R"J(,"Int","Int","Int")J"))).value();
  EXPECT_EQ(trace.comm(kFirst)->dst, 6);
  EXPECT_EQ(Ints(trace, trace.process_groups()[0].ranks), (std::vector<int64_t>{4, 6}));
  // A linked trace has Kineto's value, which is a rank of the job.
  trace =
      ReadEt(Document(message("send", "", "", R"J({"name":"comm_dst","type":"int64","value":4})J") +
                      groups))
          .value();
  EXPECT_EQ(trace.comm(kFirst)->dst, 4);
}

TEST(EtJsonReader, EachCollectiveHasOneNode) {
  const Trace trace =
      ReadEt(
          Document(CommNode(R"J([[4,5,0,8,4,"cuda:0"],3,["1",""],5,"allreduce",[],[]])J",
                            R"J(["Tensor(float)","Int","Tuple[String,String]","Int","String"])J") +
                   R"J(,{"id":10,"name":"nccl:all_reduce","ctrl_deps":9},
        {"id":11,"name":"c10d::allreduce_","ctrl_deps":1,"attrs":[{"name":"op_schema","type":"string","value":"c10d::allreduce_()"}]
},
        {"id":12,"name":"gloo:all_reduce","ctrl_deps":11,"inputs":{"values":[[4,5,0,8,4,"cpu"]],"types":["Tensor(double)"]}},
        {"id":13,"name":"nccl:coalesced","ctrl_deps":11})J"))
          .value();
  EXPECT_EQ(trace.kind(NodeId(0)), NodeKind::kCollective);
  EXPECT_EQ(trace.kind(NodeId(1)), NodeKind::kLabel) << "its record_param_comms stands for it";
  EXPECT_EQ(trace.kind(NodeId(2)), NodeKind::kOperator);
  EXPECT_EQ(trace.kind(NodeId(3)), NodeKind::kCollective);
  EXPECT_EQ(trace.kind(NodeId(4)), NodeKind::kLabel);
  ASSERT_EQ(trace.comms().size(), 2u);
  EXPECT_EQ(trace.comm(NodeId(3))->bytes, Bytes{64});
}

TEST(EtJsonReader, RootsAreThoseOfTheCalls) {
  const Trace trace =
      ReadEt(
          Document(
              R"J({"id":10,"name":"c10d::reduce_","ctrl_deps":1,"inputs":{"values":[[[4,5,0,8,4,"cpu"]],"<Object>",3],
         "types":["GenericList[Tensor(float)]","Object","Int"]},"attrs":[{"name":"op_schema","type":"string",
         "value":"c10d::reduce_(Tensor[] tensors, X process_group, int root_rank) -> Y"}]},
        {"id":11,"name":"gloo:reduce","ctrl_deps":10,"inputs":{"values":[[4,5,0,8,4,"cpu"]],"types":["Tensor(float)"]}},
        {"id":12,"name":"gloo:all_reduce","ctrl_deps":10})J"))
          .value();
  EXPECT_EQ(trace.comm(NodeId(1))->root, 3);
  EXPECT_FALSE(trace.comm(NodeId(2))->root);
}

// Gloo's thread may begin after the call has ended; a rank that only receives has no input.
TEST(EtJsonReader, CallsOfLabelsThatDoNotStandBelowThem) {
  const auto scatter = [](int id, int root) {
    return fmt::format(R"J({{"id":{},"name":"c10d::scatter_","ctrl_deps":1,"inputs":{{"values":
        [[[4,5,0,8,4,"cpu"]],[],"<Object>",{}],"types":["GenericList[Tensor(float)]","GenericList[]","Object","Int"]}},
        "attrs":[{{"name":"op_schema","type":"string",
        "value":"c10d::scatter_(Tensor[] output_tensors, Tensor[][] input_tensors, X process_group, int root_rank) -> Y"}}]}},)J",
                       id, root);
  };
  const auto read = [](const std::string& nodes) {
    return ReadEt(
               Document(
                   R"J({"id":9,"name":"## process_group:init ##","ctrl_deps":1,"inputs":{"values":
        ["[{\"pg_name\":\"0\",\"ranks\":[],\"group_size\":4}]"],"types":["String"]}},)J" +
                   nodes))
        .value();
  };
  constexpr std::string_view kLabel = R"J({{"id":{},"name":"gloo:scatter","ctrl_deps":1}})J";
  const std::string first = fmt::format(kLabel, 20);
  const std::string both = first + "," + fmt::format(kLabel, 21);
  const Trace alone = read(scatter(10, 2) + first);
  EXPECT_EQ(alone.comm(NodeId(2))->root, 2);
  EXPECT_EQ(alone.comm(NodeId(2))->bytes, Bytes{4 * 8 * 4});
  const Trace alike = read(scatter(10, 2) + scatter(11, 2) + both);
  EXPECT_EQ(alike.comm(NodeId(3))->root, 2);
  EXPECT_EQ(alike.comm(NodeId(4))->root, 2);
  const Trace others = read(scatter(10, 2) + scatter(11, 3) + both);
  EXPECT_EQ(others.comm(NodeId(3))->root, std::nullopt);
  const Trace later = read(scatter(10, 2) + first + "," + scatter(30, 3) + fmt::format(kLabel, 31));
  EXPECT_EQ(later.comm(NodeId(2))->root, 2);
  EXPECT_EQ(later.comm(NodeId(4))->root, 3);
}

// The observer loses labels: the call then stands for its collective. A label below another call,
// because Gloo's thread began it then, still belongs to its own call.
TEST(EtJsonReader, CallsWithoutLabelStandForTheirCollectives) {
  const auto call = [](int id, std::string_view name, std::string_view arguments) {
    return fmt::format(
        R"J({{"id":{},"name":"c10d::{}","ctrl_deps":1,"inputs":{{"values":[[[4,5,0,8,4,"cpu"]],"<Object>"],
        "types":["GenericList[Tensor(float)]","Object"]}},
        "attrs":[{{"name":"op_schema","type":"string","value":"c10d::{}({}, X process_group) -> Y"}}]}})J",
        id, name, name, arguments);
  };
  constexpr std::string_view kTensors = "Tensor[] tensors";
  const auto label = [](int id, std::string_view name, int parent) {
    return fmt::format(R"J({{"id":{},"name":"{}","ctrl_deps":{}}})J", id, name, parent);
  };
  const auto collectives = [](std::initializer_list<std::string> nodes) {
    const Trace trace = ReadEt(Document(fmt::format("{}", fmt::join(nodes, ",")))).value();
    std::vector<uint64_t> ids;
    ForEachNode(trace, [&](NodeId node) {
      if (trace.kind(node) == NodeKind::kCollective) ids.push_back(trace.source_id(node));
    });
    return ids;
  };
  using Found = std::vector<uint64_t>;
  EXPECT_EQ(collectives({call(10, "allreduce_", kTensors)}), Found{10});
  const Trace lost = ReadEt(Document(call(10, "allreduce_", kTensors))).value();
  EXPECT_EQ(lost.comm(NodeId(0))->type, CollectiveType::kAllReduce);
  EXPECT_EQ(lost.comm(NodeId(0))->bytes, Bytes{32});
  EXPECT_EQ(collectives({call(10, "allreduce_", kTensors), call(11, "allreduce_", kTensors),
                         label(20, "gloo:all_reduce", 1)}),
            (Found{11, 20}));
  EXPECT_EQ(collectives({call(10, "allreduce_", kTensors), call(11, "allreduce_", kTensors),
                         label(20, "gloo:all_reduce", 11), label(21, "gloo:all_reduce", 11)}),
            (Found{20, 21}));
  EXPECT_EQ(collectives({call(10, "allreduce_", kTensors), call(11, "barrier", kTensors),
                         label(20, "gloo:all_reduce", 11), label(21, "gloo:barrier", 1)}),
            (Found{20, 21}));
  EXPECT_EQ(collectives({call(10, "_reduce_scatter_base_", "Tensor output, Tensor input"),
                         label(20, "gloo:all_reduce", 1)}),
            Found{20});
  EXPECT_EQ(collectives({call(10, "allreduce_", kTensors),
                         R"J({"id":11,"name":"record_param_comms","ctrl_deps":10})J"}),
            Found{11});
}

// Two of three labels are present, in another order and below another call.
TEST(EtJsonReader, LabelsAreOfTheCallsWithTheirMemory) {
  std::string nodes;
  for (const int i : {0, 1, 2}) {
    nodes += fmt::format(
        R"J({{"id":1{},"name":"c10d::allreduce_","ctrl_deps":1,
            "inputs":{{"values":[[[4,5{},0,8,4,"cpu"]],"<Object>"],"types":["GenericList[Tensor(float)]","Object"]}},
            "attrs":[{{"name":"op_schema","type":"string","value":"c10d::allreduce_(Tensor[] tensors, X process_group) -> Y"}}]}},)J",
        i, i);
  }
  constexpr std::string_view kLabel = R"J({{"id":2{},"name":"gloo:all_reduce","ctrl_deps":{},
      "inputs":{{"values":[[4,5{},0,8,4,"cpu"]],"types":["Tensor(float)"]}}}})J";
  nodes += fmt::format(kLabel, 0, 11, 2) + "," + fmt::format(kLabel, 1, 1, 1);
  const Trace trace = ReadEt(Document(nodes)).value();
  ASSERT_EQ(trace.deps(NodeId(3)).size(), 1u);
  EXPECT_EQ(trace.source_id(trace.deps(NodeId(3))[0]), 12u);
  ASSERT_EQ(trace.deps(NodeId(4)).size(), 1u);
  EXPECT_EQ(trace.source_id(trace.deps(NodeId(4))[0]), 11u);
  EXPECT_EQ(trace.kind(NodeId(0)), NodeKind::kCollective) << "its label was lost";
  EXPECT_EQ(trace.kind(NodeId(1)), NodeKind::kOperator);
}

// For labels that began after their call had ended. A node that depends on its call already has
// one.
TEST(EtJsonReader, LabelsDependOnTheirCalls) {
  constexpr std::string_view kNodes = R"J(
      {{"id":10,"name":"c10d::allreduce_","ctrl_deps":1,
       "inputs":{{"values":[[[4,5,0,8,4,"cpu"]],"<Object>"],"types":["GenericList[Tensor(float)]","Object"]}},
       "attrs":[{{"name":"op_schema","type":"string","value":"c10d::allreduce_(Tensor[] tensors, X process_group) -> Y"}}]}},
      {{"id":20,"name":"gloo:all_reduce","ctrl_deps":{}}})J";
  const auto deps = [&](std::string_view control_deps) {
    const Trace trace = ReadEt(Document(fmt::format(kNodes, control_deps))).value();
    const auto of_label = trace.deps(NodeId(1));
    return std::vector<NodeId>(of_label.begin(), of_label.end());
  };
  EXPECT_EQ(deps("1"), std::vector{NodeId(0)});
  EXPECT_EQ(deps("[1, 10]"), std::vector{NodeId(0)});
  EXPECT_EQ(deps("10"), std::vector<NodeId>{});
}

// The observer does not record the group of a send over Gloo, but the rank in it.
TEST(EtJsonReader, PartnersInAnyOfTheGroups) {
  const auto partner = [](std::string_view groups, int rank) {
    std::string list;
    for (const char c : groups) list += c == '"' ? "\\\"" : std::string(1, c);
    const Trace trace =
        ReadEt(
            Document(
                R"J({"id":9,"name":"## process_group:init ##","ctrl_deps":1,"inputs":{"values":[")J" +
                list + R"J("],"types":["String"]}},
        {"id":10,"name":"c10d::send","ctrl_deps":1,"inputs":{"values":[[[4,5,0,8,4,"cpu"]],"<Object>",)J" +
                std::to_string(rank) +
                R"J(,3],"types":["GenericList[Tensor(float)]","Object","Int","Int"]},
         "attrs":[{"name":"op_schema","type":"string",
                   "value":"c10d::send(Tensor[] tensors, X process_group, int dst, int tag) -> Y"}]},
        {"id":11,"name":"gloo:send","ctrl_deps":10,"inputs":{"values":[[4,5,0,8,4,"cpu"]],"types":["Tensor(float)"]}})J"))
            .value();
    EXPECT_EQ(trace.kind(NodeId(2)), NodeKind::kSend);
    EXPECT_EQ(trace.comm(NodeId(2))->tag, 3);
    return trace.comm(NodeId(2))->dst;
  };
  constexpr std::string_view kAll = R"({"pg_name":"0","ranks":[],"group_size":4})";
  constexpr std::string_view kAgain = R"({"pg_name":"1","ranks":[0,1,2,3],"group_size":4})";
  constexpr std::string_view kFirst2 = R"({"pg_name":"2","ranks":[0,1],"group_size":2})";
  constexpr std::string_view kLast2 = R"({"pg_name":"3","ranks":[2,3],"group_size":2})";
  constexpr std::string_view kUnlisted = R"({"pg_name":"4","group_size":2})";
  EXPECT_EQ(partner(fmt::format("[{}]", kAll), 1), 1);
  EXPECT_EQ(partner(fmt::format("[{},{}]", kAll, kAgain), 1), 1);
  EXPECT_EQ(partner(fmt::format("[{},{}]", kAll, kFirst2), 1), 1);
  EXPECT_EQ(partner(fmt::format("[{},{}]", kAll, kLast2), 1), std::nullopt) << "rank 1 or 3";
  EXPECT_EQ(partner(fmt::format("[{},{}]", kAll, kLast2), 2), 2) << "the other one is too small";
  EXPECT_EQ(partner(fmt::format("[{},{}]", kAll, kUnlisted), 1), std::nullopt);
  EXPECT_EQ(partner(fmt::format("[{},{}]", kAll, kUnlisted), 3), 3);
  EXPECT_EQ(partner(fmt::format("[{}]", kLast2), 2), std::nullopt);
}

TEST(EtJsonReader, ReadsLinkedNodes) {
  const Trace trace =
      ReadEt(
          Document(
              R"J({"id":2,"name":"aten::mm","ctrl_deps":1,"inclusive_dur":12.5,"exclusive_dur":2.0000000000000004,
        "ts":5387313686630.679,"inter_thread_dep":null,"sync_dep":4},
       {"id":3,"name":"gemm","ctrl_deps":[2,1],"ts":1e1,"inter_thread_dep":1,"sync_dep":[1,2],"cat":"kernel","ph":"X","stream":7},
       {"id":4,"name":"copy","ctrl_deps":2,"cat":"gpu_memcpy","ph":"X","stream":null},
       {"id":5,"name":"ncclDevKernel_AllReduce_Sum","ctrl_deps":2,"cat":"kernel","ph":"X","stream":20,"pg_name":"0"},
       {"id":6,"name":"what","ctrl_deps":2,"cat":"new_kind","ph":"Y","stream":"s"},
       {"id":1,"name":"root","ctrl_deps":null})J"))
          .value();
  EXPECT_EQ(trace.info().format, TraceFormat::kLinked);
  EXPECT_EQ(trace.place(NodeId(0)), Place::kHost);
  EXPECT_EQ(trace.start(NodeId(0)), Nanos{5'387'313'686'630'679});
  EXPECT_EQ(trace.duration(NodeId(0)), Nanos{12'500});
  EXPECT_EQ(trace.exclusive(NodeId(0)), Nanos{2'000});
  ASSERT_EQ(trace.deps(NodeId(0)).size(), 1u);
  EXPECT_EQ(trace.dep_kinds(NodeId(0))[0], DepKind::kSync);
  EXPECT_EQ(trace.kind(NodeId(1)), NodeKind::kKernel);
  EXPECT_EQ(trace.place(NodeId(1)), Place::kDevice);
  EXPECT_EQ(trace.parent(NodeId(1)), NodeId(0));
  EXPECT_EQ(trace.lane(trace.lane_id(NodeId(1))).stream, 7);
  const auto kinds = trace.dep_kinds(NodeId(1));
  EXPECT_EQ(
      std::vector<DepKind>(kinds.begin(), kinds.end()),
      (std::vector<DepKind>{DepKind::kControl, DepKind::kSync, DepKind::kSync, DepKind::kData}));
  EXPECT_EQ(trace.kind(NodeId(2)), NodeKind::kMemcpy);
  EXPECT_TRUE(trace.extras(NodeId(2)).empty());
  EXPECT_EQ(trace.kind(NodeId(3)), NodeKind::kCollective);
  EXPECT_EQ(trace.text(trace.comm(NodeId(3))->group), "0");
  EXPECT_EQ(trace.comm(NodeId(3))->type, CollectiveType::kAllReduce);
  EXPECT_EQ(trace.kind(NodeId(4)), NodeKind::kUnknown);
  EXPECT_EQ(trace.extras(NodeId(4)).size(), 3u) << "cat, ph and stream as they are";
  EXPECT_EQ(trace.stats()[Stat::kRoundedTime], 0u);
}

TEST(EtJsonReader, SkipsAndCountsMalformedNodes) {
  const std::string text = Document(
      R"J({"id":1,"name":"good"},{"name":"no id"},{"id":2},3,null,{"id":"4","name":"x"},
         {"id":5,"name":7},{"id":6,"name":"x","inputs":{"values":[01]}},{"id":7,"name":"x" "y":1},
         {"id":8,"name":"x","z":[1 2]},{"id":9,"name":"x","ctrl_deps":-1},{"id":10,"name":"last"})J");
  const Trace trace = ReadEt(text).value();
  EXPECT_EQ(trace.node_count(), 3u) << "a comma is put in";
  // Nodes between an unreadable node and the next readable one are lost.
  EXPECT_EQ(trace.stats()[Stat::kMalformedElement], 6u);
  EXPECT_EQ(trace.stats()[Stat::kRepairedComma], 1u);
  const auto strict = ReadEt(text, 100, {.strict = true});
  ASSERT_FALSE(strict.has_value());
  EXPECT_EQ(strict.error().code, ErrorCode::kBadInput);
  EXPECT_NE(strict.error().message.find("node 1 cannot be read: found no 'id'"), std::string::npos)
      << strict.error().message;
}

TEST(EtJsonReader, KeepsTheCompleteNodesOfACutFile) {
  const std::string text =
      Document(R"J({"id":1,"name":"a"},{"id":2,"name":"b"},{"id":3,"name":"c"})J");
  std::string warning;
  RunContext context;
  context.warn = [&](std::string_view message) { warning = message; };
  const std::string cut = text.substr(0, text.find(R"J("c")J"));
  const Trace trace = ReadEt(cut, 1 << 20, {}, context).value();
  EXPECT_EQ(trace.node_count(), 2u);
  EXPECT_EQ(trace.stats()[Stat::kTruncated], 1u);
  EXPECT_NE(warning.find("in element 2 of 'nodes': the document ends early; kept its 2 complete"),
            std::string::npos)
      << warning;
  EXPECT_FALSE(ReadEt(cut, 1 << 20, {.strict = true}).has_value());
}

TEST(EtJsonReader, RefusesWhatIsNoExecutionTrace) {
  for (const char* text :
       {"", " ", "{}", "[]", "{\"nodes\":[]}", "{\"nodes\":{}}", "{\"nodes\":[{\"x\":1}]}",
        "{\"schema\":\"1.0.1\"}", "nodes", "\x1f\x8b", "{\"nodes\":[1,2"}) {
    const auto trace = ReadEt(text);
    ASSERT_FALSE(trace.has_value()) << text;
    EXPECT_EQ(trace.error().code, ErrorCode::kBadInput);
    EXPECT_TRUE(trace.error().message.starts_with("test:")) << trace.error().message;
  }
}

TEST(EtJsonReader, WarnsOfUnknownVersionsOnly) {
  std::vector<std::string> warnings;
  RunContext context;
  context.warn = [&](std::string_view message) { warnings.emplace_back(message); };
  for (const EtVersion& version : KnownEtVersions()) {
    const std::string text =
        "{\"schema\":\"" + std::string(version.schema) + "-chakra.0.0.4\",\"nodes\":[]}";
    EXPECT_TRUE(ReadEt(text, 7, {}, context).has_value());
  }
  EXPECT_TRUE(warnings.empty());
  EXPECT_TRUE(ReadEt("{\"schema\":\"1.1.10\",\"nodes\":[]}", 7, {}, context).has_value());
  EXPECT_EQ(warnings.size(), 1u);
}

TEST(EtJsonReader, LimitsBoundWhatAFileMayAsk) {
  RunContext context;
  context.limits.nodes = 2;
  const auto many =
      ReadEt(Document(R"J({"id":1,"name":"a"},{"id":2,"name":"b"},{"id":3,"name":"c"})J"), 64, {},
             context);
  ASSERT_FALSE(many.has_value());
  EXPECT_NE(many.error().message.find("limit 'nodes'"), std::string::npos);
  const auto deep = ReadEt("{\"nodes\":[{\"a\":" + std::string(100'000, '['));
  ASSERT_FALSE(deep.has_value());
  EXPECT_NE(deep.error().message.find("limit 'depth'"), std::string::npos);
  RunContext deeper;
  deeper.limits.depth = 1'000'000;  // still no deeper than the stack allows
  const std::string nested =
      WithInputs(std::string(100'000, '[') + std::string(100'000, ']'), "[]");
  EXPECT_FALSE(ReadEt(nested, 1 << 16, {}, deeper).has_value());
  const std::string fits = WithInputs(std::string(500, '[') + std::string(500, ']'), "[]");
  EXPECT_TRUE(ReadEt(fits, 1 << 16, {}, deeper).has_value());
}

TEST(EtJsonReader, TakesHugeNumbersAndStrings) {
  const std::string name(5 << 20, 'x');
  const Trace trace =
      ReadEt(Document(
                 R"J({"id":18446744073709551615,"name":")J" + name +
                 R"J(","ctrl_deps":18446744073709551614,"inputs":{"values":[[18446744073709551615,1,
                  9223372036854775807,9223372036854775807,9223372036854775807,"cpu"]],
                  "shapes":[[9223372036854775807,9223372036854775808]],"types":["Tensor(float)"]
}
, "ts" : 1e999
})J"))
          .value();
  EXPECT_EQ(trace.name(kFirst).size(), name.size());
  EXPECT_EQ(trace.source_id(kFirst), UINT64_MAX);
  EXPECT_TRUE(trace.tensor(trace.inputs(kFirst)[0].as_tensor()).shape.is_none());
  EXPECT_EQ(trace.stats()[Stat::kUnknownValue], 1u);
  EXPECT_EQ(trace.start(kFirst), std::nullopt);
  ASSERT_EQ(trace.extras(kFirst).size(), 1u);
  EXPECT_EQ(trace.text(trace.extras(kFirst)[0].text), "1e999");
}

TEST(EtJsonReader, TheLastOfDuplicateKeysCounts) {
  const Trace trace = ReadEt(Document(R"J({"id":1,"id":2,"name":"a","name":"b"})J")).value();
  EXPECT_EQ(trace.source_id(kFirst), 2u);
  EXPECT_EQ(trace.name(kFirst), "b");
}

struct Recorded {
  const char* file;
  size_t nodes;
  size_t operators;
  size_t communications;
};
void PrintTo(const Recorded& recorded, std::ostream* out) { *out << recorded.file; }

class RecordedEt : public testing::TestWithParam<Recorded> {};

TEST_P(RecordedEt, IsReadWithoutLoss) {
  ETUDE_NEED_DATA(GetParam().file);
  const Trace trace = ReadEt(DataText(GetParam().file)).value();
  EXPECT_EQ(trace.node_count(), GetParam().nodes);
  size_t operators = 0;
  size_t extras = 0;
  ForEachNode(trace, [&](NodeId node) {
    operators += trace.kind(node) == NodeKind::kOperator ? 1 : 0;
    for (const Extra& extra : trace.extras(node)) {
      // The description of a collective's group stays with the node.
      const std::string_view key = trace.text(extra.key);
      extras += key == "attrs/pg_desc" || key.starts_with("attrs/global_rank_") ? 0 : 1;
    }
  });
  EXPECT_EQ(operators, GetParam().operators);
  EXPECT_EQ(trace.comms().size(), GetParam().communications);
  EXPECT_EQ(extras, 0u);
  for (const Stat stat : {Stat::kUnknownValue, Stat::kMalformedElement, Stat::kTruncated,
                          Stat::kDanglingParent, Stat::kParentCycle, Stat::kRepairedEscape}) {
    EXPECT_EQ(trace.stats()[stat], 0u) << Info(stat).name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Data, RecordedEt,
    testing::Values(Recorded{"gpu/benchmark_simple_add_et.json.gz", 38, 28, 0},
                    Recorded{"gpu/linear_et_1.0.1.json.gz", 931, 710, 0},
                    Recorded{"gpu/dlrm8/host.0.json.gz", 1675, 1485, 13},
                    Recorded{"chakra/sample102/host.0.json.gz", 263, 220, 20},
                    Recorded{"gpu/resnet_1gpu_et_1.0.3.json.gz", 14391, 10818, 27},
                    Recorded{"chakra/resnet110_syn/host.0.json.gz", 14392, 10818, 27},
                    Recorded{"gpu/pt2_et_1.1.1.json.gz", 20, 4, 0},
                    Recorded{"gpu/messages/host.0.json.gz", 45, 26, 8},
                    Recorded{"gpu/graph/host.0.json.gz", 80, 36, 0},
                    Recorded{"cpu/ddp_mlp/rank-1.json.gz", 304, 230, 3},
                    Recorded{"cpu/transformer_et.json.gz", 4283, 3590, 0}),
    [](const auto& param) {
      std::string name = param.param.file;
      std::ranges::replace_if(
          name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
      return name;
    });

TEST(EtJsonReader, ChunkSizesGiveTheSameTrace) {
  const std::string text = DataText("gpu/messages/host.0.json.gz");
  const Trace whole = ReadEt(text).value();
  for (size_t chunk = 1; chunk < 300; chunk += chunk < 70 ? 1 : 37) {
    EXPECT_TRUE(ReadEt(text, chunk).value().SameContent(whole)) << chunk;
  }
}

RC_GTEST_PROP(EtJsonReaderProperty, CuttingNeverGivesMoreNodes, ()) {
  static const std::string text =
      testing_support::ReadFileBytes(ETUDE_TEST_DATA "/../corpus/et_json/nested.json");
  const auto kept = *rc::gen::inRange<size_t>(0, text.size());
  const auto whole = ReadEt(text);
  RC_ASSERT(whole.has_value());
  const auto trace =
      ReadEt(std::string_view(text).substr(0, kept), *rc::gen::inRange<size_t>(1, 500));
  if (trace) {
    RC_ASSERT(trace->node_count() <= whole->node_count());
    RC_ASSERT(trace->stats()[Stat::kTruncated] == 1u);
  }
}

}  // namespace
}  // namespace etude
