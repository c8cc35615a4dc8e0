#include "src/base/text/bounded_json.h"

#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace etude {
namespace {

using Json = nlohmann::json;

TEST(BoundedJson, IsReadToItsDepth) {
  EXPECT_EQ(ParseBounded<Json>(R"({"a": [[1]]})", 3).dump(), R"({"a":[[1]]})");
  EXPECT_TRUE(ParseBounded<Json>(R"({"a": [[1]]})", 2).is_discarded());
  // Siblings do not add depth.
  EXPECT_EQ(ParseBounded<Json>("[[1],[2],[3]]", 2).size(), 3u);
}

// A parser callback would take quadratic time in the list's length.
TEST(BoundedJson, ListsMayBeLong) {
  std::string list = "[{}";
  for (int i = 1; i < 200'000; ++i) list += ",{}";
  EXPECT_EQ(ParseBounded<Json>(list + "]").size(), 200'000u);
}

TEST(BoundedJson, WhatIsNoneIsDiscarded) {
  EXPECT_TRUE(ParseBounded<Json>("{").is_discarded());
  std::istringstream stream("[1, 2]");
  EXPECT_EQ(ParseBounded<Json>(stream).size(), 2u);
}

TEST(BoundedJson, TooDeepToBeCopiedOrWritten) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_TRUE(ParseBounded<Json>(deep).is_discarded());
}

}  // namespace
}  // namespace etude
