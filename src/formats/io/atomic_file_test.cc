#include "src/formats/io/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "src/formats/io/byte_source.h"
#include "src/formats/test_support.h"

namespace etude {
namespace {

namespace fs = std::filesystem;
using testing_support::ReadFileBytes;

class AtomicFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) /
        (std::string("atomic_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  size_t FileCount() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  std::string Uncompressed(const std::string& name) const {
    auto source = ByteSource::Open(Path(name), Limits()).value();
    std::string text;
    for (auto chunk = source.Next(); chunk && !chunk->empty(); chunk = source.Next()) {
      text += *chunk;
    }
    return text;
  }

  fs::path folder_;
};

std::string Text() {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i);
  return text;
}

TEST_F(AtomicFileTest, AppearsCompleteOrNotAtAll) {
  {
    AtomicFile file = AtomicFile::Create(Path("a")).value();
    ASSERT_TRUE(file.Write("half").has_value());
    EXPECT_FALSE(fs::exists(Path("a")));
  }
  EXPECT_EQ(FileCount(), 0u) << "nothing is left of what was not committed";
  AtomicFile file = AtomicFile::Create(Path("a")).value();
  for (const char* part : {"o", "n", "e"}) ASSERT_TRUE(file.Write(part).has_value());
  ASSERT_TRUE(file.Commit().has_value());
  EXPECT_EQ(ReadFileBytes(Path("a")), "one");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(AtomicFileTest, NothingIsLeftOfAKilledProcess) {
  const int probe = ::open(folder_.c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (probe < 0) GTEST_SKIP() << "this file system has no files without names";
  ::close(probe);
  const pid_t child = ::fork();
  if (child == 0) {
    Result<AtomicFile> file = AtomicFile::Create(Path("a"));
    if (file) (void)file->Write(Text());
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(FileCount(), 0u);
}

TEST_F(AtomicFileTest, WhatAKilledProcessHasLeftGoesWithTheNextFile) {
  // While `other` is alive, its temporary file must stay.
  ASSERT_TRUE(WriteFile(Path("a"), "old").has_value());
  ASSERT_TRUE(WriteFile(Path(".a.etude-tmp-0"), "half").has_value());
  const int other = ::open(Path(".a.etude-tmp-0").c_str(), O_WRONLY);
  ASSERT_GE(other, 0);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  ASSERT_TRUE(WriteFile(Path("a"), "new").has_value());
  EXPECT_EQ(ReadFileBytes(Path("a")), "new");
  EXPECT_EQ(ReadFileBytes(Path(".a.etude-tmp-0")), "half");
  EXPECT_EQ(FileCount(), 2u);
  ::close(other);
  ASSERT_TRUE(WriteFile(Path("a"), "newer").has_value());
  EXPECT_EQ(ReadFileBytes(Path("a")), "newer");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(AtomicFileTest, WhatWasLeftOfAFileThatIsNotThereGoesToo) {
  ASSERT_TRUE(WriteFile(Path(".a.etude-tmp-0"), "half").has_value());
  ASSERT_TRUE(WriteFile(Path("a"), "new").has_value());
  EXPECT_EQ(ReadFileBytes(Path("a")), "new");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(AtomicFileTest, NamesAsLongAsTheyMayBeCanBeReplaced) {
  const std::string name(255, 'n');
  ASSERT_TRUE(WriteFile(Path(name), "old").has_value());
  ASSERT_TRUE(WriteFile(Path(name), "new").has_value());
  EXPECT_EQ(ReadFileBytes(Path(name)), "new");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(AtomicFileTest, OfTwoWithOneNameTheLaterCommitStays) {
  AtomicFile first = AtomicFile::Create(Path("a")).value();
  AtomicFile second = AtomicFile::Create(Path("a")).value();
  ASSERT_TRUE(first.Write("first").has_value());
  ASSERT_TRUE(second.Write("second").has_value());
  ASSERT_TRUE(second.Commit().has_value());
  ASSERT_TRUE(first.Commit().has_value());
  EXPECT_EQ(ReadFileBytes(Path("a")), "first");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(AtomicFileTest, KeepsTheOldFileUntilCommit) {
  ASSERT_TRUE(WriteFile(Path("a"), "old").has_value());
  fs::permissions(Path("a"), fs::perms::owner_read | fs::perms::owner_write);
  AtomicFile file = AtomicFile::Create(Path("a")).value();
  ASSERT_TRUE(file.Write("new").has_value());
  EXPECT_EQ(ReadFileBytes(Path("a")), "old");
  ASSERT_TRUE(file.Commit().has_value());
  EXPECT_EQ(ReadFileBytes(Path("a")), "new");
  EXPECT_EQ(fs::status(Path("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(AtomicFileTest, CompressesByNameReproducibly) {
  const std::string text = Text();
  for (const std::string& name : {std::string("a.gz"), std::string("a.zst")}) {
    ASSERT_TRUE(WriteFile(Path(name), text).has_value());
    EXPECT_LT(fs::file_size(Path(name)), text.size() / 2);
    EXPECT_EQ(Uncompressed(name), text);
    ASSERT_TRUE(WriteFile(Path("b_" + name), text).has_value());
    EXPECT_EQ(ReadFileBytes(Path(name)), ReadFileBytes(Path("b_" + name)));
    ASSERT_TRUE(WriteFile(Path("empty_" + name), "").has_value());
    EXPECT_EQ(Uncompressed("empty_" + name), "");
    EXPECT_FALSE(ReadFileBytes(Path("empty_" + name)).empty()) << "an empty stream, not a file";
  }
}

TEST_F(AtomicFileTest, PiecesOfAnySizeStayInOrder) {
  const std::string large = Text();
  AtomicFile file = AtomicFile::Create(Path("a")).value();
  std::string expected;
  for (const std::string& piece : {large, std::string("small"), large, large, std::string("end")}) {
    ASSERT_TRUE(file.Write(piece).has_value());
    expected += piece;
  }
  ASSERT_TRUE(file.Commit().has_value());
  EXPECT_EQ(ReadFileBytes(Path("a")), expected);
}

TEST_F(AtomicFileTest, FollowsSymbolicLinks) {
  ASSERT_TRUE(WriteFile(Path("target"), "old").has_value());
  fs::create_symlink("target", Path("link"));
  ASSERT_TRUE(WriteFile(Path("link"), "new").has_value());
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(ReadFileBytes(Path("target")), "new");
}

// A folder from somebody else may contain links to other files, and pipes.
TEST_F(AtomicFileTest, ReplacesWhatHasTheNameOfAFileInAFolder) {
  ASSERT_TRUE(WriteFile(Path("target"), "old").has_value());
  fs::create_symlink("target", Path("link"));
  fs::create_symlink("nowhere", Path("dangling"));
  fs::create_directory_symlink(".", Path("folder_link"));
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  for (const char* name : {"link", "dangling", "folder_link", "pipe", "new"}) {
    ASSERT_TRUE(ReplaceFile(Path(name), "new").has_value()) << name;
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(Path(name)))) << name;
    EXPECT_EQ(ReadFileBytes(Path(name)), "new");
  }
  EXPECT_EQ(ReadFileBytes(Path("target")), "old");
  EXPECT_FALSE(fs::exists(Path("nowhere")));
  EXPECT_FALSE(ReplaceFile(folder_.string(), "new").has_value()) << "no folder is replaced";
}

TEST_F(AtomicFileTest, KeepsNoRightOfAnotherUser) {
  ASSERT_TRUE(WriteFile(Path("a"), "old").has_value());
  ASSERT_EQ(chmod(Path("a").c_str(), 04755), 0);
  ASSERT_TRUE(WriteFile(Path("a"), "new").has_value());
  EXPECT_EQ(fs::status(Path("a")).permissions(), static_cast<fs::perms>(0755));
}

TEST_F(AtomicFileTest, RefusesALinkForAFolder) {
  fs::create_directory_symlink(".", Path("link"));
  EXPECT_EQ(CheckNoLink(Path("link")).error().code, ErrorCode::kIo);
  EXPECT_TRUE(CheckNoLink(folder_.string()).has_value());
  EXPECT_TRUE(CheckNoLink(Path("nothing")).has_value());
}

TEST_F(AtomicFileTest, RefusalsOfTheSystemAreIoErrors) {
  for (const std::string& path :
       {Path("no/such/folder"), folder_.string(), std::string("/proc/cannot/be")}) {
    const auto file = AtomicFile::Create(path);
    ASSERT_FALSE(file.has_value()) << path;
    EXPECT_EQ(file.error().code, ErrorCode::kIo);
    EXPECT_TRUE(file.error().message.starts_with(path + ": "));
  }
}

TEST_F(AtomicFileTest, AFullDiskIsAnIoError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const Status status = WriteFile("/dev/full", Text());
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_TRUE(fs::is_character_file("/dev/full")) << "written to, not replaced";
}

}  // namespace
}  // namespace etude
