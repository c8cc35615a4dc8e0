// Chakra traces written by other tools.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "src/formats/chakra/chakra_reader.h"
#include "src/formats/chakra/chakra_writer.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/read_trace.h"
#include "tests/trace_dump.h"

namespace etude {
namespace {

const std::string kData = ETUDE_SHARED_DATA;

#define ETUDE_NEEDS_SHARED_DATA() \
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no recorded traces at " << kData

std::vector<std::string> ChakraFiles() {
  std::vector<std::string> files;
  for (const char* folder : {"/chakra", "/stage", "/astra-sim"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kData + folder)) {
      const std::string path = entry.path().string();
      if (path.ends_with(".et") || path.ends_with(".et.zst")) files.push_back(path);
    }
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

// Files of chakra_converter, chakra_generator, the Text converter, STAGE and hand-made ones keep
// every field and attribute, known or not, with its position, type and spelling.
TEST(ChakraData, EveryFileIsWrittenBackByteForByte) {
  ETUDE_NEEDS_SHARED_DATA();
  const std::vector<std::string> files = ChakraFiles();
  EXPECT_GE(files.size(), 1500u);
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

// A host trace and its conversion by Chakra's converter have the same arguments.
TEST(ChakraData, IsAsGoodAsTheHostTraceItWasMadeFrom) {
  ETUDE_NEEDS_SHARED_DATA();
  const RunContext context;
  const auto host = ReadTrace(kData + "/chakra/sample102/host.0.json.gz", {}, context);
  const auto chakra = ReadTrace(kData + "/chakra/sample102/chakra.0.et", {}, context);
  ASSERT_TRUE(host.has_value() && chakra.has_value());
  ASSERT_EQ(chakra->node_count(), 262u) << "the converter drops the process root";
  ForEachNode(*chakra, [&](NodeId node) {
    const NodeId same = host->Find(chakra->source_id(node));
    ASSERT_TRUE(same) << chakra->source_id(node);
    EXPECT_EQ(chakra->name(node), host->name(same));
    EXPECT_EQ(chakra->rf_id(node), host->rf_id(same));
    EXPECT_EQ(chakra->seq_id(node), host->seq_id(same));
    EXPECT_EQ(chakra->scope(node), host->scope(same));
    EXPECT_EQ(chakra->text(chakra->op_schema(node)), host->text(host->op_schema(same)));
    EXPECT_EQ(testing_dump::Arguments(*chakra, chakra->input_list(node)),
              testing_dump::Arguments(*host, host->input_list(same)));
    EXPECT_EQ(testing_dump::Arguments(*chakra, chakra->output_list(node)),
              testing_dump::Arguments(*host, host->output_list(same)));
    // Kinds of communication come from the arguments, which Chakra's reader does not interpret.
    if (host->comm(same) != nullptr) return;
    EXPECT_EQ(chakra->kind(node), host->kind(same)) << host->name(same);
  });
}

}  // namespace
}  // namespace etude
