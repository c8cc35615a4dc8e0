#include "src/formats/read_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <utility>

#include "src/formats/io/atomic_file.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/test_support.h"

namespace etude {
namespace {

Result<Trace> ReadBytes(std::string bytes, const ReadOptions& options = {},
                        const RunContext& context = {}) {
  ByteSource source = ByteSource::FromMemory("mem", std::move(bytes), context.limits);
  return ReadTrace(source, options, context);
}

constexpr const char* kEt =
    R"J({"schema":"1.0.1","nodes":[{"id":1,"name":"a","parent":1},{"id":2,"name":"b","parent":1}]})J";

TEST(DetectFileKind, DecidesByContent) {
  EXPECT_EQ(DetectFileKind(kEt), FileKind::kPyTorchEt);
  EXPECT_EQ(DetectFileKind(R"J( {"nodes":[{"id":1,"name":"a"}]})J"), FileKind::kPyTorchEt);
  EXPECT_EQ(DetectFileKind(R"J({"schema":"1.1.1","pid":4,"no)J"), FileKind::kPyTorchEt);
  EXPECT_EQ(DetectFileKind(R"J({"schemaVersion":1,"deviceProperties":[)J"), FileKind::kKineto);
  EXPECT_EQ(DetectFileKind(R"J({"schemaVersion":1,)J"), FileKind::kKineto);
  EXPECT_EQ(DetectFileKind(R"J({"traceEvents":[)J"), FileKind::kKineto);
  EXPECT_EQ(DetectFileKind("\xEF\xBB\xBF[{\"ph\":\"X\"}]"), FileKind::kKineto);
  EXPECT_EQ(
      DetectFileKind(
          R"J({"schema":"1","nodes":[{"id":0,"name":"p"},{"id":1,"name":"a","inclusive_dur":1}]})J"),
      FileKind::kLinked);
  EXPECT_EQ(DetectFileKind(R"J({"workload_graph":[]})J"), FileKind::kChakraFeeder);
  EXPECT_EQ(DetectFileKind(R"J({"nodes":[{"key":1}]})J"), FileKind::kOtherJson);
  EXPECT_EQ(DetectFileKind(R"J({"a":1})J"), FileKind::kOtherJson);
  EXPECT_EQ(DetectFileKind(""), FileKind::kUnknown);
  EXPECT_EQ(DetectFileKind("hello\n"), FileKind::kUnknown);
  EXPECT_EQ(DetectFileKind(std::string("\0\0\0\0", 4)), FileKind::kUnknown);
  EXPECT_EQ(DetectFileKind("\x07\x0a\x05"
                           "1.0.0"
                           "\x04\x08\x01\x18\x04"),
            FileKind::kChakra);
  EXPECT_EQ(DetectFileKind("\x07\x0a\x05"
                           "1.0.0"),
            FileKind::kChakra)
      << "no nodes";
  EXPECT_EQ(DetectFileKind("\x07\x1a\x05"
                           "1.0.0"),
            FileKind::kUnknown)
      << "no such field";
}

// '{' is 123, '[' 91: a first message of that size, with a version or an attribute in front.
TEST(DetectFileKind, ChakraWhoseFirstByteIsABracket) {
  const std::string node = "\x04\x08\x01\x18\x04";
  const std::string version =
      "\x0a\x05"
      "1.0.0";
  for (const char bracket : {'{', '['}) {
    const auto length = static_cast<size_t>(bracket);
    const auto attr = [](size_t bytes) {
      return "\x12" + std::string(1, static_cast<char>(bytes - 2)) + "\x0a" +
             std::string(1, static_cast<char>(bytes - 4)) + std::string(bytes - 4, 'n');
    };
    EXPECT_EQ(DetectFileKind(bracket + attr(length) + node), FileKind::kChakra);
    EXPECT_EQ(DetectFileKind(bracket + version + attr(length - 7) + node), FileKind::kChakra);
  }
  EXPECT_EQ(DetectFileKind("{\n \"a\": \"" + std::string(200, 'b') + "\"}"), FileKind::kOtherJson);
  EXPECT_EQ(DetectFileKind("{\n"), FileKind::kOtherJson);
}

TEST(ReadTrace, ReadsCompressedFilesByContent) {
  const auto folder = std::filesystem::path(testing::TempDir());
  for (const char* name : {"t.json", "t.json.gz", "t.json.zst"}) {
    const std::string path = (folder / name).string();
    ASSERT_TRUE(WriteFile(path, kEt).has_value());
    // The name must not matter.
    const std::string renamed = (folder / "renamed.bin").string();
    std::filesystem::rename(path, renamed);
    const auto trace = ReadTrace(renamed, {}, {});
    ASSERT_TRUE(trace.has_value()) << trace.error().message;
    EXPECT_EQ(trace->node_count(), 2u);
    std::filesystem::remove(renamed);
  }
}

TEST(ReadTrace, SaysWhatItFoundInstead) {
  const auto message = [](std::string bytes) {
    const auto trace = ReadBytes(std::move(bytes));
    EXPECT_FALSE(trace.has_value());
    EXPECT_EQ(trace.error().code, ErrorCode::kBadInput);
    return trace.error().message;
  };
  EXPECT_TRUE(message("").starts_with("mem: found an empty file, expected a trace"));
  EXPECT_TRUE(message("\xFF\xFE{").starts_with("mem: found UTF-16 text"));
  const auto zeros = [](std::string_view text) {  // '0' for the byte 0
    std::string bytes(text);
    std::ranges::replace(bytes, '0', '\0');
    return bytes;
  };
  EXPECT_TRUE(message(zeros("{0\"0n0")).starts_with("mem: found UTF-16 text"));
  EXPECT_TRUE(message(zeros("0{0\"0n")).starts_with("mem: found UTF-16 text"));
  EXPECT_TRUE(message(zeros("\xFF\xFE"
                            "00{000"))
                  .starts_with("mem: found UTF-32 text"));
  EXPECT_TRUE(message(zeros("{000\"000")).starts_with("mem: found UTF-32 text"));
  EXPECT_TRUE(message(zeros("000{000\"")).starts_with("mem: found UTF-32 text"));
  EXPECT_EQ(message("{x"), "mem:byte 1: found 'x', expected a key in quotes");
  EXPECT_TRUE(message("PK\x03\x04").starts_with("mem: found a zip archive; unpack it first"));
  EXPECT_TRUE(message("BZh9").starts_with("mem: found bzip2 data"));
  EXPECT_TRUE(message("\xFD"
                      "7zXZ")
                  .starts_with("mem: found xz data"));
  EXPECT_TRUE(message("t.json" + std::string(251, '\0') + "ustar").starts_with("mem: found a tar"));
  EXPECT_TRUE(
      message(R"J({"model":1,"x":2})J").starts_with("mem: found JSON with the keys 'model', 'x'"));
  EXPECT_TRUE(message(R"J( {"other-tool":[{"metadata":{)J")
                  .starts_with("mem: found JSON with the key 'other-tool', expected"));
  EXPECT_TRUE(message(R"J({"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,
                          "m":1})J")
                  .find("'k', 'l', …, expected") != std::string::npos);
  EXPECT_TRUE(message("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n")
                  .starts_with("mem: found a Git LFS pointer; fetch its file first"));
  EXPECT_TRUE(message("\x0a\x30\x08\x01\x12\x0d/device:GPU:0" + std::string(40, '\x2a'))
                  .starts_with("mem: found an XLA profile"));
  EXPECT_TRUE(
      message(R"J({"workload_graph":[]})J").starts_with("mem: found a Chakra feeder graph"));
  EXPECT_TRUE(message("\x7f"
                      "ELF")
                  .starts_with("mem: found data in an unknown format"));
  EXPECT_NE(message(R"J({"model":)J" + std::string(5000, '[')).find("limit 'depth'"),
            std::string::npos);
}

TEST(ReadTrace, CountsForeignBytesAndCutsOfCompressedFiles) {
  const std::string path = (std::filesystem::path(testing::TempDir()) / "c.json.gz").string();
  ASSERT_TRUE(WriteFile(path, kEt).has_value());
  const std::string bytes = testing_support::ReadFileBytes(path);
  std::filesystem::remove(path);

  Trace trace = ReadBytes(bytes + "garbage").value();
  EXPECT_EQ(trace.stats()[Stat::kTrailingData], 7u);
  EXPECT_FALSE(ReadBytes(bytes + "garbage", {.strict = true}).has_value());

  // Only the checksum is missing: the document is complete, the file is not.
  trace = ReadBytes(bytes.substr(0, bytes.size() - 4)).value();
  EXPECT_EQ(trace.node_count(), 2u);
  EXPECT_EQ(trace.stats()[Stat::kTruncated], 1u);
  EXPECT_FALSE(ReadBytes(bytes.substr(0, bytes.size() - 4), {.strict = true}).has_value());
}

TEST(ReadTrace, ReportsProgressAndHonoursLimits) {
  RunContext context;
  uint64_t calls = 0;
  context.progress = [&](std::string_view, uint64_t, uint64_t) { ++calls; };
  EXPECT_TRUE(ReadBytes(kEt, {}, context).has_value());
  EXPECT_GT(calls, 0u);
  context.limits.total_bytes = 10;
  const auto trace = ReadBytes(kEt, {}, context);
  ASSERT_FALSE(trace.has_value());
  EXPECT_NE(trace.error().message.find("limit 'total_bytes'"), std::string::npos);
}

using testing_support::DataPath;

void ExpectFormats(std::initializer_list<std::pair<const char*, TraceFormat>> files) {
  for (const auto& [file, format] : files) {
    const auto trace = ReadTrace(DataPath(file), {}, {});
    ASSERT_TRUE(trace.has_value()) << trace.error().message;
    EXPECT_EQ(trace->info().format, format) << file;
  }
}

TEST(ReadTrace, RecordedFilesAreTold) {
  ExpectFormats({
      {"cpu/mlp_et.json.gz", TraceFormat::kPyTorchEt},
      {"cpu/mlp_kineto.json.gz", TraceFormat::kKineto},
      {"chakra_tools/converter/mlp.et", TraceFormat::kChakra},
      {"chakra_tools/text/net_DATA.0.et", TraceFormat::kChakra},
      {"stage/gpt_dp2_tp2_ep2_l2/stage.0.et", TraceFormat::kChakra},
  });
  EXPECT_FALSE(ReadTrace(DataPath("cpu/mlp_meta.json"), {}, {}).has_value());
}

TEST(ReadTrace, SharedFilesAreTold) {
  ETUDE_NEED_SHARED_DATA();
  ExpectFormats({
      {"chakra/dlrm8/linked.0.json.zst", TraceFormat::kLinked},
      {"chakra/dlrm8/chakra.0.et.zst", TraceFormat::kChakra},
  });
  EXPECT_FALSE(ReadTrace(DataPath("chakra/feeder/small_chakra.0.json"), {}, {}).has_value());
}

}  // namespace
}  // namespace etude
