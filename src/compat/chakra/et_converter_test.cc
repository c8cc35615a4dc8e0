#include "src/compat/chakra/et_converter.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "src/compat/chakra_link/et_trace.h"
#include "src/formats/test_support.h"

namespace etude::compat {
namespace {

using testing_support::DataText;

Result<std::string> Convert(std::string_view json) {
  NodeTextReader reader(64);
  ETUDE_ASSIGN_OR_RETURN(EtTrace trace, ReadEtTrace(json, "test", {}, reader));
  std::string bytes;
  ETUDE_RETURN_IF_ERROR(WriteChakraEt(trace, "test", [&](std::string_view part) {
    bytes += part;
    return Status();
  }));
  return bytes;
}

void ExpectSame(const std::string& json, const std::string& expected) {
  const auto bytes = Convert(json);
  ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
  EXPECT_TRUE(*bytes == expected) << bytes->size() << " and " << expected.size();
}

TEST(ChakraConverter, WritesTheBytesOfChakraForHostTraces) {
  for (const std::string name : {"mlp", "lstm"}) {
    ExpectSame(DataText("cpu/" + name + "_et.json.gz"),
               DataText("chakra_tools/converter/" + name + ".et"));
  }
}

TEST(ChakraConverter, WritesTheBytesOfChakraForSharedLinkedTraces) {
  ETUDE_NEED_SHARED_DATA();
  for (const std::string trace : {"resnet110_syn", "gpt2_syn"}) {
    ExpectSame(DataText("chakra/" + trace + "/linked.0.json.zst"),
               DataText("chakra/" + trace + "/chakra.0.et.zst"));
  }
  for (const std::string rank : {"0", "1", "2", "3"}) {
    ExpectSame(DataText("chakra/dlrm8/linked." + rank + ".json.zst"),
               DataText("chakra/dlrm8/chakra." + rank + ".et.zst"));
  }
}

TEST(ChakraConverter, WritesTheBytesOfChakraForASharedHostTrace) {
  ETUDE_NEED_SHARED_DATA();
  ExpectSame(DataText("chakra/sample102/host.0.json.gz"), DataText("chakra/sample102/chakra.0.et"));
}

std::string Node(int id, int parent, std::string_view name, std::string_view more = "") {
  return R"({"id":)" + std::to_string(id) + R"(,"name":")" + std::string(name) +
         R"(","ctrl_deps":)" + std::to_string(parent) +
         R"(,"inputs":{"values":[],"shapes":[],"types":[]},)"
         R"("outputs":{"values":[],"shapes":[],"types":[]},"attrs":[)"
         R"({"name":"rf_id","value":0},{"name":"fw_parent","value":0},{"name":"seq_id","value":0},)"
         R"({"name":"scope","value":0},{"name":"tid","value":0},{"name":"fw_tid","value":0},)"
         R"({"name":"op_schema","value":""}])" +
         std::string(more) + "}";
}

std::string Document(std::string_view nodes, std::string_view schema = "1.1.0-chakra.0.0.4") {
  return R"({"schema":")" + std::string(schema) +
         R"(","pid":1,"time":"now","start_ts":1,"nodes":[)" + std::string(nodes) +
         R"(],"finish_ts":2})";
}

constexpr std::string_view kThread = "[pytorch|profiler|execution_trace|thread]";

void ExpectFailure(const std::string& json, std::string_view what) {
  const auto bytes = Convert(json);
  ASSERT_FALSE(bytes.has_value()) << what;
  EXPECT_EQ(bytes.error().code, ErrorCode::kBadInput);
  EXPECT_NE(bytes.error().message.find(what), std::string::npos) << bytes.error().message;
  EXPECT_NE(bytes.error().message.find("Chakra 1.0.0 fails here too"), std::string::npos);
}

TEST(ChakraConverter, FailsWhereChakraFails) {
  const std::string root = Node(1, 0, kThread);
  ExpectFailure(Document(root, "1.0.1"), "schema 1.0.1");
  ExpectFailure(Document(root, "1.1.1-chakra.1.0.0"), "AttributeError");
  ExpectFailure(R"({"nodes":[]})", "KeyError");
  ExpectFailure(Document(root + "," + Node(2, 1, "a") + "," +
                         Node(3, 2, "ncclDevKernel_Reduce_Sum", R"(,"cat":"kernel")")),
                "ncclDevKernel_Reduce_Sum");
  ExpectFailure(Document(root + "," + Node(2, 1, "a", R"(,"inter_thread_dep":77)")), "77");
  ExpectFailure(
      Document(root + "," + Node(2, 1, "a", R"(,"inter_thread_dep":3)") + "," + Node(3, 1, "b")),
      "a cycle");
  ExpectFailure(Document(root + "," + Node(2, 1, "a", R"(,"exclusive_dur":-1)")), "exclusive_dur");
}

TEST(ChakraConverter, ChainsEndWherePythonsRecursionEnds) {
  // Later nodes come first in the file, so that the search for cycles begins at the chain's end.
  const auto chain = [](int length) {
    std::string nodes;
    for (int id = length; id > 1; --id) nodes += Node(id, 1, "a") + ",";
    return Document(nodes + Node(1, 0, kThread));
  };
  EXPECT_TRUE(Convert(chain(994)).has_value());
  ExpectFailure(chain(995), "RecursionError");
}

TEST(ChakraConverter, AttributesOverwriteKeys) {
  const std::string plain = Document(Node(1, 0, kThread) + "," + Node(2, 1, "b"));
  std::string overwritten = Document(Node(1, 0, kThread) + "," + Node(2, 1, "a"));
  const std::string op_schema = R"({"name":"op_schema","value":""})";
  overwritten.insert(overwritten.rfind(op_schema), R"({"name":"name","value":"b"},)");
  ASSERT_TRUE(Convert(plain).has_value());
  EXPECT_EQ(*Convert(plain), *Convert(overwritten));
}

}  // namespace
}  // namespace etude::compat
