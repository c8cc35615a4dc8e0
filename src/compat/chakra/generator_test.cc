#include "src/compat/chakra/generator.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "src/compat/chakra/jsonizer.h"
#include "src/compat/chakra/text_converter.h"
#include "src/formats/test_support.h"

namespace etude::compat {
namespace {

using testing_support::DataText;
using Files = std::map<std::string, std::string>;

Status Into(Files& files, const std::string& name, std::string_view bytes) {
  files[name] = bytes;
  return {};
}

Result<std::string> Json(const std::string& et) {
  std::string json;
  ETUDE_RETURN_IF_ERROR(WriteChakraJson(et, "test", [&](std::string_view part) {
    json += part;
    return Status();
  }));
  return json;
}

TEST(ChakraGenerator, MakesTheBytesOfChakra) {
  Files files;
  const auto sink = [&](const std::string& name, std::string_view bytes) {
    return Into(files, name, bytes);
  };
  ASSERT_TRUE(GenerateChakra({.num_npus = 2}, sink).has_value());
  EXPECT_EQ(files.size(), 28u);
  for (const auto& [name, bytes] : files) {
    EXPECT_TRUE(bytes == DataText("chakra_tools/generator/" + name)) << name;
  }
  EXPECT_FALSE(GenerateChakra({.default_runtime = -1}, sink).has_value());
}

TEST(ChakraJsonizer, WritesTheBytesOfChakra) {
  for (const std::string name :
       {"ALL_GATHER", "ALL_REDUCE", "ALL_TO_ALL", "BARRIER", "BROADCAST", "REDUCE_SCATTER",
        "one_comm_recv_node", "one_comm_send_node", "one_comp_node", "one_metadata_node_all_types",
        "one_remote_mem_load_node", "one_remote_mem_store_node", "two_comp_nodes_dependent",
        "two_comp_nodes_independent"}) {
    const std::string path = "chakra_tools/generator/" + name + ".0.et";
    const auto json = Json(DataText(path));
    ASSERT_TRUE(json.has_value()) << name;
    EXPECT_EQ(*json, DataText(path + ".json")) << name;
  }
}

TEST(ChakraJsonizer, EndsWhereChakraEnds) {
  EXPECT_EQ(*Json(""), "{}");
  EXPECT_EQ(*Json(std::string("\0\2\x08\1\0\2\x08\2", 8)), "{}{\n  \"id\": \"1\"\n}");
  // A type that has no name, a field of another wire type, a number that was packed.
  EXPECT_EQ(*Json(std::string("\0\2\x18\x09\3\x0a\1x\4\x2a\2\1\2", 13)),
            "{}{\n  \"type\": 9\n}{}{\n  \"dataDeps\": [\n    \"1\",\n    \"2\"\n  ]\n}");
  EXPECT_FALSE(Json(std::string("\0\3\x12\1\xff", 5)).has_value()) << "a name that is not UTF-8";
  EXPECT_FALSE(Json(std::string("\0\2\x12\5", 4)).has_value()) << "a name that is cut";
}

TEST(ChakraTextConverter, MakesTheBytesOfChakra) {
  for (const std::string name : {"net_DATA", "net_MODEL", "net_MICRO", "net_HYBRID_DATA_MODEL",
                                 "net_HYBRID_MODEL_DATA", "net_HYBRID_DLRM"}) {
    Files files;
    const auto sink = [&](const std::string& file, std::string_view bytes) {
      return Into(files, file, bytes);
    };
    const std::string text = DataText("chakra_tools/text/" + name + ".txt");
    const Status status =
        ConvertText(text, {.input = "test", .output = name, .num_npus = 2, .num_passes = 2}, sink);
    ASSERT_TRUE(status.has_value()) << name << status.error().message;
    ASSERT_EQ(files.size(), 2u);
    for (const auto& [file, bytes] : files) {
      EXPECT_TRUE(bytes == DataText("chakra_tools/text/" + file)) << file;
    }
  }
}

TEST(ChakraTextConverter, FailsWhereChakraFails) {
  const FileSink sink = [](const std::string&, std::string_view) { return Status(); };
  const TextRequest request{.input = "test", .output = "x", .num_npus = 1, .num_passes = 1};
  const std::string layer = "a -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n";
  EXPECT_TRUE(ConvertText("DATA\n1\n" + layer, request, sink).has_value());
  EXPECT_FALSE(ConvertText("HYBRID_TRANSFORMER\n1\n" + layer, request, sink).has_value());
  EXPECT_FALSE(ConvertText("DATA\nx\n" + layer, request, sink).has_value());
  EXPECT_FALSE(ConvertText("DATA\n1\na b\n", request, sink).has_value());
  EXPECT_FALSE(ConvertText("DATA", request, sink).has_value());
  EXPECT_FALSE(ConvertText("HYBRID_DLRM 0\n1\n" + layer, request, sink).has_value())
      << "layer 0 has no ALLTOALL to wait for";
}

}  // namespace
}  // namespace etude::compat
