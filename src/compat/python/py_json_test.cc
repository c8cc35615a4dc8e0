#include "src/compat/python/py_json.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "src/compat/chakra/json_scanner.h"

namespace etude::compat {
namespace {

struct Row {
  std::string_view json;
  std::string_view str;   // str(json.loads(text))
  std::string_view dump;  // json.dumps(json.loads(text), indent=4)
};

// Results of Python 3.11.
constexpr Row kRows[] = {
    {"null", "None", "null"},
    {"true", "True", "true"},
    {"\"a\"", "a", "\"a\""},
    {"\"it's\"", "it's", "\"it's\""},
    {"\"say \\\"hi\\\"\"", "say \"hi\"", "\"say \\\"hi\\\"\""},
    {"\"both ' and \\\"\"", "both ' and \"", "\"both ' and \\\"\""},
    {"\"a\\\\b\\n\\t\\r\\u0007\\u007f\\u00e9\\u200b\\ud83d\\ude00\\ud800\\/\"",
     "a\\b\n\x09\x0d\x07\x7f\xc3\xa9\xe2\x80\x8b\xf0\x9f\x98\x80\xed\xa0\x80/",
     "\"a\\\\b\\n\\t\\r\\u0007\\u007f\\u00e9\\u200b\\ud83d\\ude00\\ud800/\""},
    {"\"\xc3\xa9\xe4\xb8\xad\xcd\xb8\xf0\x9f\x98\x80\xf3\xa0\x80\x81\"",
     "\xc3\xa9\xe4\xb8\xad\xcd\xb8\xf0\x9f\x98\x80\xf3\xa0\x80\x81",
     "\"\\u00e9\\u4e2d\\u0378\\ud83d\\ude00\\udb40\\udc01\""},
    {"[]", "[]", "[]"},
    {"{}", "{}", "{}"},
    {"[ ]", "[]", "[]"},
    {"[1,[],{\"a\":[1.5,-0,-0.0]}]", "[1, [], {'a': [1.5, 0, -0.0]}]",
     "[\n    1,\n    [],\n    {\n        \"a\": [\n            1.5,\n            0,\n            "
     "-0.0\n        ]\n    }\n]"},
    {"[1.0,1e5,1E-5,0.0001,0.00001,1e16,123456789012345.60,5387313686640.342,1e400,-1e400,1e-400,"
     "9007199254740993.0,NaN,-Infinity,0.10,100.0,12345678901234567890123]",
     "[1.0, 100000.0, 1e-05, 0.0001, 1e-05, 1e+16, 123456789012345.6, 5387313686640.342, inf, "
     "-inf, 0.0, 9007199254740992.0, nan, -inf, 0.1, 100.0, 12345678901234567890123]",
     "[\n    1.0,\n    100000.0,\n    1e-05,\n    0.0001,\n    1e-05,\n    1e+16,\n    "
     "123456789012345.6,\n    5387313686640.342,\n    Infinity,\n    -Infinity,\n    0.0,\n    "
     "9007199254740992.0,\n    NaN,\n    -Infinity,\n    0.1,\n    100.0,\n    "
     "12345678901234567890123\n]"},
    {"{\"b\":1,\"a\":{\"x\":null},\"c\":[{}, []]}", "{'b': 1, 'a': {'x': None}, 'c': [{}, []]}",
     "{\n    \"b\": 1,\n    \"a\": {\n        \"x\": null\n    },\n    \"c\": [\n        {},\n     "
     "   []\n    ]\n}"},
    {"\"\\b\\f\"", "\x08\x0c", "\"\\b\\f\""},
    {"\"\"", "", "\"\""},
    {"[[9, 6, 0, 48, 4, \"cuda:0\"], [-1, 16], \"\", true]",
     "[[9, 6, 0, 48, 4, 'cuda:0'], [-1, 16], '', True]",
     "[\n    [\n        9,\n        6,\n        0,\n        48,\n        4,\n        \"cuda:0\"\n  "
     "  ],\n    [\n        -1,\n        16\n    ],\n    \"\",\n    true\n]"},
};

TEST(PyJson, WritesWhatPythonWrites) {
  for (const Row& row : kRows) {
    JsonScanner scanner(row.json, "test", 64);
    const std::string_view value = scanner.Value();
    scanner.ExpectEnd();
    ASSERT_TRUE(scanner.status().has_value()) << row.json;
    ByteBuffer str;
    AppendPyStr(value, str);
    EXPECT_EQ(str.view(), row.str) << row.json;
    ByteBuffer dump;
    AppendPyDump(value, 0, dump);
    EXPECT_EQ(dump.view(), row.dump) << row.json;
  }
}

TEST(PyJson, ARepeatedKeyHasItsFirstPlaceAndItsLastValue) {
  constexpr std::string_view kJson = R"([{"a": 1, "b": {"c": 1, "c": 2}, "\u0061": 3}])";
  JsonScanner scanner(kJson, "test", 64);
  EXPECT_EQ(scanner.Value(), kJson);
  EXPECT_TRUE(scanner.TakeIrregular());
  EXPECT_FALSE(scanner.TakeIrregular());
  EXPECT_EQ(WithoutRepeatedKeys(kJson), R"([{"a":3,"b":{"c":2}}])");
  JsonScanner regular(R"([{"a": 1}, {"a": 1}])", "test", 64);
  regular.Value();
  EXPECT_FALSE(regular.TakeIrregular());
}

}  // namespace
}  // namespace etude::compat
