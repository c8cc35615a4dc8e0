#include "src/base/text/folder_names.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(FolderNames, AreInOrder) {
  const std::string folder = testing::TempDir() + "/names";
  std::filesystem::create_directories(folder + "/b");
  std::ofstream(folder + "/c") << "c";
  std::ofstream(folder + "/.a") << "a";
  EXPECT_EQ(NamesIn(folder).value(), (std::vector<std::string>{".a", "b", "c"}));
  std::filesystem::remove_all(folder);
}

TEST(FolderNames, AFolderThatCannotBeReadIsAnError) {
  const auto absent = NamesIn("/no/such");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::kIo);
  EXPECT_EQ(absent.error().message, "/no/such: No such file or directory");
}

}  // namespace
}  // namespace etude
