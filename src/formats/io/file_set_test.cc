#include "src/formats/io/file_set.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "src/formats/test_support.h"

namespace etude {
namespace {

namespace fs = std::filesystem;
using testing_support::ReadFileBytes;

TEST(FileSet, NoneHasItsNameBeforeAllAreComplete) {
  const fs::path folder = fs::path(testing::TempDir()) / "file_set";
  fs::remove_all(folder);
  fs::create_directory(folder);
  const std::string a = folder / "a";
  ASSERT_TRUE(WriteFile(a, "old").has_value());
  {
    FileSet files;
    ASSERT_TRUE(files.Add(a, "new").has_value());
    const Status refused = files.Add(folder / "none/b", "new");
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  }
  EXPECT_EQ(ReadFileBytes(a), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
  FileSet files;
  ASSERT_TRUE(files.Add(a, "new").has_value());
  ASSERT_TRUE(files.Add(folder / "b", "too").has_value());
  EXPECT_EQ(ReadFileBytes(a), "old");
  ASSERT_TRUE(files.Commit().has_value());
  EXPECT_EQ(ReadFileBytes(a), "new");
  EXPECT_EQ(ReadFileBytes(folder / "b"), "too");
  fs::remove_all(folder);
}

TEST(FileSet, WhatComesAfterAFileThatCannotHaveItsNameIsGone) {
  const fs::path folder = fs::path(testing::TempDir()) / "file_set_commit";
  fs::remove_all(folder);
  fs::create_directory(folder);
  FileSet files;
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(files.Add(folder / name, name).has_value());
  fs::create_directories(folder / "b/full");
  EXPECT_FALSE(files.Commit().has_value());
  EXPECT_EQ(ReadFileBytes(folder / "a"), "a");
  EXPECT_FALSE(fs::exists(folder / "c"));
  EXPECT_TRUE(files.Commit().has_value()) << "nothing is left to do";
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 2);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace etude
