// Chakra traces written by other tools.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "src/formats/chakra/chakra_reader.h"
#include "src/formats/chakra/chakra_writer.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/json/value_text.h"
#include "src/formats/read_trace.h"
#include "src/formats/test_support.h"

namespace etude {
namespace {

using testing_support::DataPath;

std::vector<std::string> ChakraFiles(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (path.ends_with(".et") || path.ends_with(".et.zst")) files.push_back(path);
  }
  std::ranges::sort(files);
  return files;
}

std::string BytesOf(const std::string& path) {
  auto source = ByteSource::Open(path, {});
  EXPECT_TRUE(source.has_value()) << path;
  std::string bytes;
  while (true) {
    const auto chunk = source->Next();
    EXPECT_TRUE(chunk.has_value()) << path;
    if (!chunk || chunk->empty()) return bytes;
    bytes += *chunk;
  }
}

// Every field and attribute, known or not, in the places, types and words in which it stood.
void ExpectWrittenBack(const std::vector<std::string>& files) {
  const RunContext context;
  for (const std::string& path : files) {
    const std::string bytes = BytesOf(path);
    const auto reader = MakeChakraReader(path, {.strict = true}, context);
    ASSERT_TRUE(reader->Push(bytes).has_value()) << path;
    const auto trace = reader->Finish(false);
    ASSERT_TRUE(trace.has_value()) << trace.error().message;
    std::string written;
    const auto report = WriteChakra(*trace, {.verbatim = true}, [&](std::string_view part) {
      written += part;
      return Status();
    });
    ASSERT_TRUE(report.has_value());
    EXPECT_TRUE(written == bytes) << path << ": " << written.size() << " and " << bytes.size();
  }
}

// Files of chakra_converter, chakra_generator, the Text converter, STAGE and hand-made ones.
TEST(ChakraData, EveryFileIsWrittenBackByteForByte) {
  const std::vector<std::string> files = ChakraFiles(ETUDE_UNPACKED_DATA);
  EXPECT_GE(files.size(), 1450u);
  ExpectWrittenBack(files);
}

TEST(ChakraData, EverySharedFileIsWrittenBackByteForByte) {
  ETUDE_NEED_SHARED_DATA();
  const std::vector<std::string> files = ChakraFiles(ETUDE_SHARED_DATA "/chakra");
  EXPECT_GE(files.size(), 50u);
  ExpectWrittenBack(files);
}

// Chakra's converter writes no strides.
std::string ArgumentsWithoutStrides(const Trace& trace, ValueListId list) {
  if (!list) return "none";
  const auto values = trace.values(list);
  std::string text;
  AppendValues(trace, values, TextStyle::kJson, text);
  AppendShapes(trace, values, text);
  AppendTypes(trace, values, TextStyle::kJson, text);
  return text;
}

// Expects that the output of Chakra's converter for a host trace has the same arguments as the host
// trace.
void ExpectAsGood(const std::string& host_path, const std::string& chakra_path) {
  const RunContext context;
  const auto host = ReadTrace(host_path, {}, context);
  const auto chakra = ReadTrace(chakra_path, {}, context);
  ASSERT_TRUE(host.has_value() && chakra.has_value());
  ASSERT_EQ(chakra->node_count() + 1, host->node_count()) << "the converter drops the process root";
  ForEachNode(*chakra, [&](NodeId node) {
    const NodeId same = host->Find(chakra->source_id(node));
    ASSERT_TRUE(same) << chakra->source_id(node);
    EXPECT_EQ(chakra->name(node), host->name(same));
    EXPECT_EQ(chakra->rf_id(node), host->rf_id(same));
    EXPECT_EQ(chakra->seq_id(node), host->seq_id(same));
    EXPECT_EQ(chakra->scope(node), host->scope(same));
    EXPECT_EQ(chakra->text(chakra->op_schema(node)), host->text(host->op_schema(same)));
    EXPECT_EQ(ArgumentsWithoutStrides(*chakra, chakra->input_list(node)),
              ArgumentsWithoutStrides(*host, host->input_list(same)));
    EXPECT_EQ(ArgumentsWithoutStrides(*chakra, chakra->output_list(node)),
              ArgumentsWithoutStrides(*host, host->output_list(same)));
    // Kinds of communication come from the arguments, which Chakra's reader leaves alone.
    if (host->comm(same) != nullptr) return;
    EXPECT_EQ(chakra->kind(node), host->kind(same)) << host->name(same);
  });
}

TEST(ChakraData, IsAsGoodAsTheHostTraceItWasMadeFrom) {
  for (const std::string name : {"mlp", "lstm"}) {
    ExpectAsGood(DataPath("cpu/" + name + "_et.json.gz"),
                 DataPath("chakra_tools/converter/" + name + ".et"));
  }
}

TEST(ChakraData, IsAsGoodAsTheSharedHostTraceItWasMadeFrom) {
  ETUDE_NEED_SHARED_DATA();
  ExpectAsGood(DataPath("chakra/sample102/host.0.json.gz"),
               DataPath("chakra/sample102/chakra.0.et"));
}

}  // namespace
}  // namespace etude
