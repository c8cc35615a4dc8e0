#include "src/compat/chakra/generator.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <vector>

#include <protozero/varint.hpp>

#include "src/compat/chakra/chakra_fails.h"
#include "src/compat/chakra/chakra_message.h"

namespace etude::compat {
namespace {

constexpr std::string_view kVersion = "1.0.0";

uint64_t Bits(int64_t value) { return static_cast<uint64_t>(value); }

struct Collective {
  std::string_view name;
  ChakraComm type;
  bool has_size;
};
constexpr auto kGenerated = std::to_array<Collective>({
    {"ALL_REDUCE", ChakraComm::kAllReduce, true},
    {"ALL_TO_ALL", ChakraComm::kAllToAll, true},
    {"ALL_GATHER", ChakraComm::kAllGather, true},
    {"REDUCE_SCATTER", ChakraComm::kReduceScatter, true},
    {"BROADCAST", ChakraComm::kBroadcast, true},
    {"BARRIER", ChakraComm::kBarrier, false},
});

class Generator {
 public:
  Generator(const GeneratorRequest& request, const FileSink& sink)
      : request_(request), sink_(sink) {}

  Status Run() {
    const auto tensor = [&](std::string_view file, std::string_view name, ChakraType type) {
      return EachNpu(file, [&] {
        ChakraNode node(next_id_++, name, type);
        node.Attr(NotOnCpu());
        node.Attr(ChakraAttr("tensor_size").Varint(13, Bits(request_.default_tensor_size)));
        Add(node);
      });
    };
    const auto runtime = Bits(request_.default_runtime);
    const auto comp = [&](std::span<const uint64_t> deps) {
      ChakraNode node(next_id_++, "COMP_NODE", ChakraType::kComp, deps, runtime);
      Add(node.Attr(NotOnCpu()));
    };
    ETUDE_RETURN_IF_ERROR(EachNpu("one_metadata_node_all_types", [&] { AllTypes(); }));
    ETUDE_RETURN_IF_ERROR(
        tensor("one_remote_mem_load_node", "MEM_LOAD_NODE", ChakraType::kMemLoad));
    ETUDE_RETURN_IF_ERROR(
        tensor("one_remote_mem_store_node", "MEM_STORE_NODE", ChakraType::kMemStore));
    ETUDE_RETURN_IF_ERROR(EachNpu("one_comp_node", [&] { comp({}); }));
    ETUDE_RETURN_IF_ERROR(EachNpu("two_comp_nodes_independent", [&] {
      comp({});
      comp({});
    }));
    ETUDE_RETURN_IF_ERROR(EachNpu("two_comp_nodes_dependent", [&] {
      comp({});
      comp(std::array{next_id_ - 1});
    }));
    for (const Collective& collective : kGenerated) {
      const uint64_t size = collective.has_size ? Bits(request_.default_comm_size) : 0;
      ETUDE_RETURN_IF_ERROR(EachNpu(collective.name, [&] {
        ChakraNode node(next_id_++, collective.name, ChakraType::kColl);
        node.Attr(NotOnCpu());
        node.Attr(ChakraAttr("comm_type").Varint(9, static_cast<uint64_t>(collective.type)));
        Add(node.Attr(ChakraAttr("comm_size").Varint(9, size)));
      }));
    }
    ETUDE_RETURN_IF_ERROR(tensor("one_comm_send_node", "COMM_SEND_NODE", ChakraType::kSend));
    return tensor("one_comm_recv_node", "COMM_RECV_NODE", ChakraType::kRecv);
  }

 private:
  static ChakraAttr NotOnCpu() { return std::move(ChakraAttr("is_cpu_op").Varint(27, 0)); }

  void Add(const ChakraNode& node) { AppendMessage(node.view(), file_); }

  template <typename Fill>
  Status EachNpu(std::string_view name, Fill fill) {
    for (int64_t npu = 0; npu < request_.num_npus; ++npu) {
      file_.Clear();
      ByteBuffer metadata;
      AppendBytesField(1, kVersion, metadata);
      AppendMessage(metadata.view(), file_);
      fill();
      ETUDE_RETURN_IF_ERROR(sink_(fmt::format("{}.{}.et", name, npu), file_.view()));
    }
    return {};
  }

  // Makes one attribute of each type.
  void AllTypes() {
    ChakraNode node(next_id_++, "METADATA_NODE", ChakraType::kMetadata);
    constexpr int64_t kLarge = 9876543210;
    constexpr int64_t kLarge2 = 1234567890;
    std::vector<std::string> texts;
    for (int i = 0; i < 10; ++i) texts.push_back(fmt::format("{}", 12345 + i));
    node.Attr(ChakraAttr("double", "double").Fixed(3, 1.2345));
    node.Attr(ChakraAttr("double_list").FixedList(4, {1.2345, 2.3456}));
    node.Attr(ChakraAttr("float", "float").Fixed(5, 1.2345F));
    node.Attr(ChakraAttr("float_list").FixedList(6, {1.2345F, 2.3456F}));
    node.Attr(ChakraAttr("int32", "int32").Varint(7, 12345));
    node.Attr(ChakraAttr("int32_list").VarintList(8, {12345, 23456}));
    node.Attr(ChakraAttr("int64", "int64").Varint(9, kLarge));
    node.Attr(ChakraAttr("int64_list").VarintList(10, {kLarge, kLarge2}));
    node.Attr(ChakraAttr("uint32", "uint32").Varint(11, 12345));
    node.Attr(ChakraAttr("uint32_list").VarintList(12, {12345, 23456}));
    node.Attr(ChakraAttr("uint64", "uint64").Varint(13, kLarge));
    node.Attr(ChakraAttr("uint64_list").VarintList(14, {kLarge, kLarge2}));
    node.Attr(ChakraAttr("sint32", "sint32").Varint(15, protozero::encode_zigzag64(-12345)));
    node.Attr(ChakraAttr("sint32_list")
                  .VarintList(
                      16, {protozero::encode_zigzag64(12345), protozero::encode_zigzag64(-23456)}));
    node.Attr(ChakraAttr("sint64", "sint64").Varint(17, protozero::encode_zigzag64(-kLarge)));
    node.Attr(ChakraAttr("sint64_list")
                  .VarintList(18, {protozero::encode_zigzag64(kLarge),
                                   protozero::encode_zigzag64(-kLarge2)}));
    node.Attr(ChakraAttr("fixed32").Fixed(19, uint32_t{12345}));
    node.Attr(ChakraAttr("fixed32_list").FixedList<uint32_t>(20, {12345, 23456}));
    node.Attr(ChakraAttr("fixed64").Fixed(21, kLarge));
    node.Attr(ChakraAttr("fixed64_list").FixedList<int64_t>(22, {kLarge, kLarge2}));
    node.Attr(ChakraAttr("sfixed32").Fixed(23, int32_t{-12345}));
    node.Attr(ChakraAttr("sfixed32_list").FixedList<int32_t>(24, {12345, -23456}));
    node.Attr(ChakraAttr("sfixed64").Fixed(25, -kLarge));
    node.Attr(ChakraAttr("sfixed64_list").FixedList<int64_t>(26, {kLarge, -kLarge2}));
    node.Attr(ChakraAttr("bool", "bool").Varint(27, 1));
    node.Attr(ChakraAttr("bool_list").VarintList(28, {1, 0, 1, 0, 1, 0, 1, 0, 1, 0}));
    node.Attr(ChakraAttr("string", "string").Bytes(29, "12345"));
    node.Attr(ChakraAttr("string_list").BytesList(30, texts));
    node.Attr(ChakraAttr("bytes").Bytes(31, "12345"));
    node.Attr(ChakraAttr("bytes_list").BytesList(32, texts));
    Add(node);
  }

  const GeneratorRequest& request_;
  const FileSink& sink_;
  uint64_t next_id_ = 0;  // continues across files
  ByteBuffer file_;
};

}  // namespace

Status GenerateChakra(const GeneratorRequest& request, const FileSink& sink) {
  if (request.default_runtime < 0 || request.default_tensor_size < 0) {
    return ChakraFails("chakra_generator", "a negative runtime or tensor size", "ValueError");
  }
  return Generator(request, sink).Run();
}

}  // namespace etude::compat
