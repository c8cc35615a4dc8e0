#include "src/standalone/runtime_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "src/trace/words/enums.h"

// Its names are meant for separate programs; its includes are listed above.
namespace etude::cpp_runtime {
#include "src/standalone/assets/benchmark.h"
}

namespace etude {
namespace {

std::string_view RuntimeText(std::string_view name) {
  const auto file = std::ranges::find(RuntimeFiles(), name, &RuntimeFile::name);
  return file == RuntimeFiles().end() ? std::string_view() : file->text;
}

// Returns the rows of main.cc's DTypeNamed: names, and the types that they map to.
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

// Steps name the types that have a number in PyTorch.
TEST(RuntimeFiles, TheCppProgramKnowsEachElementType) {
  std::map<std::string, std::string> written;
  for (int64_t number = 0; number <= std::numeric_limits<int8_t>::max(); ++number) {
    const DType dtype = DTypeFromScalarType(number);
    if (dtype != DType::kUnknown) written.emplace(Name(dtype), Name(dtype));
  }
  EXPECT_FALSE(written.empty());
  EXPECT_EQ(DTypesOfMain(), written);
}

// Returns the nesting of an argument's lists of inputs: "[0 [1 2] []]".
std::string TextOf(const cpp_runtime::Argument& argument) {
  const auto* list = std::get_if<cpp_runtime::List>(&argument.value);
  if (list == nullptr) {
    return std::to_string(std::get<cpp_runtime::Tensor>(argument.value).input);
  }
  std::string items;
  for (const cpp_runtime::Argument& item : *list)
    items += (items.empty() ? "" : " ") + TextOf(item);
  return "[" + items + "]";
}

// Holds for all compilers, also for a list that contains a single list.
TEST(RuntimeFiles, ListsAreWhatStandsInTheCode) {
  using cpp_runtime::ListOf;
  using cpp_runtime::Tensor;
  const auto all = [](std::initializer_list<cpp_runtime::Argument> arguments) {
    return TextOf(ListOf(arguments));
  };
  EXPECT_EQ(all({Tensor(0), ListOf({Tensor(1), Tensor(2)}), ListOf({})}), "[0 [1 2] []]");
  EXPECT_EQ(all({ListOf({ListOf({Tensor(0), Tensor(1)})})}), "[[[0 1]]]");
  EXPECT_EQ(all({ListOf({ListOf({Tensor(0)})}), Tensor(1)}), "[[[0]] 1]");
  EXPECT_EQ(all({ListOf({ListOf({})})}), "[[[]]]");
}

}  // namespace
}  // namespace etude
