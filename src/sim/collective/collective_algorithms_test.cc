#include "src/sim/collective/collective_algorithms.h"

#include <gtest/gtest.h>

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
  for (const char* name :
       {"", "one", "rings", "direct0", "direct-1", "direct4x", "ring4", "RING"}) {
    const auto read = AlgorithmNamed(name, "system.json: all-reduce");
    ASSERT_FALSE(read) << name;
    const std::string& message = read.error().message;
    EXPECT_TRUE(message.starts_with("system.json: all-reduce: found '" + std::string(name) +
                                    "', expected ring, direct, direct4 (with a window), "));
    EXPECT_TRUE(message.ends_with(", optionally after the prefix 'one'")) << message;
    for (const AlgorithmInfo& info : AlgorithmTable()) {
      EXPECT_EQ(message.find(info.name) != std::string::npos, info.in_files) << message;
    }
  }
}

TEST(CollectiveAlgorithms, SomeNeedPowersOfTwo) {
  EXPECT_TRUE(Info(CollectiveAlgorithm::kRing).Fits(3));
  EXPECT_FALSE(Info(CollectiveAlgorithm::kHalvingDoubling).Fits(3));
  EXPECT_TRUE(Info(CollectiveAlgorithm::kHalvingDoubling).Fits(8));
}

}  // namespace
}  // namespace etude
