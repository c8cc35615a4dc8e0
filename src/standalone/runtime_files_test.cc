#include "src/standalone/runtime_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "src/trace/enums.h"

namespace etude {
namespace {

std::string_view RuntimeText(std::string_view name) {
  const auto file = std::ranges::find(RuntimeFiles(), name, &RuntimeFile::name);
  return file == RuntimeFiles().end() ? std::string_view() : file->text;
}

// The rows of main.cc's DTypeNamed: the names, and those of the types that they become.
std::map<std::string, std::string> DTypesOfMain() {
  std::map<std::string, std::string> rows;
  std::string_view text = RuntimeText("main.cc");
  text.remove_prefix(std::min(text.size(), text.find("DTypeNamed(")));
  text = text.substr(0, text.find("};"));
  for (size_t at = text.find("{\""); at != std::string_view::npos; at = text.find("{\"")) {
    text.remove_prefix(at + 2);
    std::string_view type = text.substr(0, text.find('}'));  // c10::kHalf, c10::ScalarType::UInt16
    type.remove_prefix(type.rfind(':') + 1);
    if (type.starts_with('k')) type.remove_prefix(1);
    rows.emplace(text.substr(0, text.find('"')), Name(DTypeFromText(type)));
  }
  return rows;
}

// Steps name those types that have a number of PyTorch's.
TEST(RuntimeFiles, TheCppProgramKnowsEachElementType) {
  std::map<std::string, std::string> written;
  for (int64_t number = 0; number <= std::numeric_limits<int8_t>::max(); ++number) {
    const DType dtype = DTypeFromScalarType(number);
    if (dtype != DType::kUnknown) written.emplace(Name(dtype), Name(dtype));
  }
  EXPECT_FALSE(written.empty());
  EXPECT_EQ(DTypesOfMain(), written);
}

}  // namespace
}  // namespace etude
