#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <system_error>

#include <gtest/gtest.h>

namespace etude {
namespace {

using RemoveAll = std::uintmax_t (*)(const std::filesystem::path&, std::error_code&);

// libtorch exports an older copy of std::filesystem, which in some wheels calls missing functions.
TEST(CppLibraryTest, IsTheSystemsAndNotLibtorchs) {
  const RemoveAll remove_all = &std::filesystem::remove_all;
  Dl_info found{};
  ASSERT_NE(dladdr(reinterpret_cast<const void*>(remove_all), &found), 0);
  EXPECT_NE(std::string(found.dli_fname).find("libstdc++"), std::string::npos) << found.dli_fname;
}

}  // namespace
}  // namespace etude
