#include "src/formats/chakra/chakra_json.h"

#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "et_def.pb.h"
#include "src/formats/test_support.h"

namespace etude {
namespace {

using nlohmann::json;
using testing_support::Framed;

ChakraProtoMsg::Node LargeNode() {
  ChakraProtoMsg::Node node;
  node.set_id(uint64_t{1} << 60);
  node.set_name("a \"name\"\n");
  node.set_type(ChakraProtoMsg::COMM_COLL_NODE);
  node.add_data_deps(3);
  auto* attr = node.add_attr();
  attr->set_name("comm_size");
  attr->set_int64_val(-5);
  return node;
}

std::string Jsonized(const std::string& bytes, size_t chunk, bool strict,
                     Result<ChakraJsonReport>* result = nullptr) {
  std::string text;
  const ByteSink sink = [&](std::string_view piece) {
    text += piece;
    return Status();
  };
  ChakraJson json_of("test", strict, Limits(), sink);
  Result<ChakraJsonReport> report = ChakraJsonReport();
  for (size_t at = 0; at < bytes.size() && report; at += chunk) {
    if (const Status status = json_of.Push(std::string(bytes.substr(at, chunk))); !status) {
      report = tl::unexpected<Error>(status.error());
    }
  }
  if (report) report = json_of.Finish(false);
  if (result != nullptr) *result = report;
  return text;
}

TEST(ChakraJson, EveryMessageIsProtobufsOwnJson) {
  ChakraProtoMsg::GlobalMetadata metadata;
  metadata.set_version("0.0.4");
  ChakraProtoMsg::Node small;
  small.set_id(3);
  const std::string bytes = Framed(metadata.SerializeAsString()) +
                            Framed(small.SerializeAsString()) +
                            Framed(LargeNode().SerializeAsString());
  for (const size_t chunk : {size_t{1}, size_t{5}, size_t{1000}}) {
    const json document = json::parse(Jsonized(bytes, chunk, true));
    EXPECT_EQ(document["metadata"]["version"], "0.0.4");
    ASSERT_EQ(document["nodes"].size(), 2u);
    EXPECT_EQ(document["nodes"][1]["id"], "1152921504606846976") << "exact for every reader";
    ChakraProtoMsg::Node back;
    ASSERT_TRUE(
        google::protobuf::util::JsonStringToMessage(document["nodes"][1].dump(), &back).ok());
    EXPECT_EQ(back.SerializeAsString(), LargeNode().SerializeAsString());
  }
}

TEST(ChakraJson, DamageIsCountedOrRefused) {
  const std::string head = Framed("");
  const std::string node = Framed(LargeNode().SerializeAsString());
  Result<ChakraJsonReport> report = ChakraJsonReport();
  EXPECT_EQ(json::parse(Jsonized(head, 10, true, &report))["nodes"].size(), 0u);
  ASSERT_TRUE(report);

  const std::string bad = Framed("\xff\xff");
  EXPECT_EQ(json::parse(Jsonized(head + bad + node, 10, false, &report))["nodes"].size(), 1u);
  EXPECT_EQ(report->malformed, 1u);
  Jsonized(head + bad + node, 10, true, &report);
  EXPECT_FALSE(report);

  const std::string unknown = Framed(LargeNode().SerializeAsString() + "\x58\x07");
  EXPECT_EQ(json::parse(Jsonized(head + unknown, 10, true, &report))["nodes"].size(), 1u);
  EXPECT_EQ(report->unknown_fields, 1u);

  const std::string cut = head + node + node.substr(0, 9);
  EXPECT_EQ(json::parse(Jsonized(cut, 10, false, &report))["nodes"].size(), 1u);
  EXPECT_TRUE(report->cut);
  Jsonized(cut, 10, true, &report);
  EXPECT_FALSE(report);

  Jsonized("", 10, false, &report);
  EXPECT_FALSE(report);
  Jsonized(head + std::string(6, '\xff'), 10, false, &report);
  EXPECT_FALSE(report);
}

}  // namespace
}  // namespace etude
