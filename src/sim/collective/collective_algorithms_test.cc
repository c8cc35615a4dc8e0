#include "src/sim/collective/collective_algorithms.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace etude {
namespace {

TEST(CollectiveAlgorithms, NamesOfFilesAreRead) {
  for (const AlgorithmInfo& info : AlgorithmTable()) {
    for (const bool whole : {false, true}) {
      AlgorithmChoice choice{.algorithm = info.algorithm, .whole = whole};
      if (info.has_window) choice.window = 4;
      const auto read = AlgorithmNamed(AlgorithmName(choice), "here");
      ASSERT_EQ(read.has_value(), info.in_files) << info.name;
      if (!read) continue;
      EXPECT_EQ(read->algorithm, choice.algorithm);
      EXPECT_EQ(read->window, choice.window);
      EXPECT_EQ(read->whole, choice.whole);
    }
  }
}

TEST(CollectiveAlgorithms, OtherNamesAreErrors) {
  std::vector<std::string> names;
  for (const AlgorithmInfo& info : AlgorithmTable()) {
    if (!info.in_files) continue;
    names.emplace_back(info.name);
    if (info.has_window) names.push_back(std::string(info.name) + "4 (with a window)");
  }
  const std::string last = names.back();
  names.pop_back();
  for (const char* name :
       {"", "one", "rings", "direct0", "direct-1", "direct4x", "ring4", "RING"}) {
    const auto read = AlgorithmNamed(name, "system.json: all-reduce");
    ASSERT_FALSE(read) << name;
    EXPECT_EQ(read.error().message,
              fmt::format("system.json: all-reduce: found '{}', expected {} or {}, optionally "
                          "after the prefix 'one'",
                          name, fmt::join(names, ", "), last));
  }
}

TEST(CollectiveAlgorithms, SomeNeedPowersOfTwo) {
  EXPECT_TRUE(Info(CollectiveAlgorithm::kRing).Fits(3));
  EXPECT_FALSE(Info(CollectiveAlgorithm::kHalvingDoubling).Fits(3));
  EXPECT_TRUE(Info(CollectiveAlgorithm::kHalvingDoubling).Fits(8));
}

}  // namespace
}  // namespace etude
