#include "src/compat/chakra/json_scanner.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace etude::compat {
namespace {

TEST(JsonScanner, RefusesWhatPythonRefuses) {
  for (const std::string_view json :
       {"",      "[",       "[1",          "[1,]", "{",        "{\"a\"}", "{\"a\":1,}", "{a:1}",
        "[1 2]", "01",      "1.",          "-",    "1e",       ".5",      "+1",         "tru",
        "nan",   "\"\\x\"", "\"\\u12g4\"", "\"a",  "\"a\nb\"", "'a'",     "[1]]"}) {
    JsonScanner scanner(json, "test", 64);
    scanner.Value();
    scanner.ExpectEnd();
    EXPECT_FALSE(scanner.status().has_value()) << json;
  }
  JsonScanner deep("[[[[1]]]]", "test", 3);
  deep.Value();
  EXPECT_FALSE(deep.status().has_value());
  const std::string digits(4301, '7');
  JsonScanner long_int(digits, "test", 64);
  long_int.Value();
  EXPECT_FALSE(long_int.status().has_value());
}

TEST(JsonScanner, WalksOverMembersAndElements) {
  JsonScanner scanner(R"( { "a" : [ 1 , 2 ] , "b" : { } } )", "test", 64);
  ASSERT_TRUE(scanner.EnterObject());
  bool first = true;
  std::string_view key;
  ASSERT_TRUE(scanner.NextMember(first, key));
  EXPECT_EQ(key, "\"a\"");
  ASSERT_TRUE(scanner.EnterArray());
  bool first_element = true;
  std::string seen;
  while (scanner.NextElement(first_element)) seen += std::string(scanner.Value()) + ";";
  EXPECT_EQ(seen, "1;2;");
  ASSERT_TRUE(scanner.NextMember(first, key));
  EXPECT_EQ(scanner.Value(), "{ }");
  EXPECT_FALSE(scanner.NextMember(first, key));
  scanner.ExpectEnd();
  EXPECT_TRUE(scanner.status().has_value());
}

}  // namespace
}  // namespace etude::compat
