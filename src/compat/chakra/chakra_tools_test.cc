#include "src/compat/chakra/chakra_tools.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "src/formats/io/atomic_file.h"
#include "src/formats/test_support.h"

namespace etude::compat {
namespace {

using testing_support::DataText;
using testing_support::ReadFileBytes;

class ChakraTools : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  // A file of test data, uncompressed.
  std::string Unpacked(const std::string& name) const {
    const std::string path = Path(std::filesystem::path(name).stem().string());
    EXPECT_TRUE(WriteFile(path, DataText(name)).has_value());
    return path;
  }

  void ExpectLinks(const std::string& input, const std::string& expected, const std::string& rank) {
    const LinkRequest request{.host = Unpacked(input + "/host." + rank + ".json.gz"),
                              .device = Unpacked(input + "/device." + rank + ".json.gz"),
                              .linked = Path("linked.json"),
                              .et = Path("chakra.et")};
    const Status status = TraceLink(request, {});
    ASSERT_TRUE(status.has_value()) << status.error().message;
    EXPECT_TRUE(ReadFileBytes(request.linked) ==
                DataText(expected + "/linked." + rank + ".json.zst"))
        << expected << " " << rank;
    EXPECT_TRUE(ReadFileBytes(request.et) == DataText(expected + "/chakra." + rank + ".et.zst"))
        << expected << " " << rank;
  }

  std::filesystem::path folder_;
};

TEST_F(ChakraTools, LinkTheBytesOfChakraForGpt2) {
  ETUDE_NEED_SHARED_DATA();
  ExpectLinks("chakra/gpt2_syn", "chakra/gpt2_syn", "0");
}

TEST_F(ChakraTools, LinkTheBytesOfChakraForSynchronisations) {
  ETUDE_NEED_SHARED_DATA();
  ExpectLinks("chakra/resnet110_syn", "chakra/resnet110_syn", "0");
}

TEST_F(ChakraTools, LinkTheBytesOfChakraForDlrm) {
  ETUDE_NEED_SHARED_DATA();
  for (const std::string rank : {"0", "1", "2", "3"}) {
    ExpectLinks("gpu/dlrm8", "chakra/dlrm8", rank);
  }
}

TEST_F(ChakraTools, LeaveNoFileBehindWhereChakraFails) {
  ASSERT_TRUE(WriteFile(Path("host.json"), R"({"schema": "1.0.9", "pid": 1, "nodes": []})"));
  const Status status = ConvertPyTorch(Path("host.json"), Path("x.et"), {});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kBadInput);
  EXPECT_FALSE(std::filesystem::exists(Path("x.et")));
}

}  // namespace
}  // namespace etude::compat
