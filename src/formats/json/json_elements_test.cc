#include "src/formats/json/json_elements.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "src/formats/json/json_text.h"
#include "src/formats/json/mend_element.h"

namespace etude {
namespace {

struct Elements {
  std::vector<std::string> elements;
  std::vector<uint64_t> offsets;
  std::vector<std::string> members;  // "key=text"
  std::string array;
  bool complete = false;
  uint64_t trailing = 0;
  uint64_t repairs = 0;
  std::string error;
};

Elements SplitElements(std::string_view text, size_t chunk = 1 << 20, const Limits& limits = {}) {
  JsonElements splitter(
      {.name = "f", .array_keys = {"nodes"}, .bare_array = true, .limits = limits});
  Elements document;
  for (size_t at = 0; at <= text.size() && document.error.empty(); at += chunk) {
    const std::string piece(text.substr(at, chunk));
    splitter.Push(piece);
    while (true) {
      const auto item = splitter.Next();
      if (!item) {
        document.error = item.error().message;
        break;
      }
      if (item->kind == JsonItem::Kind::kNone) break;
      if (item->kind == JsonItem::Kind::kArray) document.array = std::string(item->key) + "!";
      if (item->kind == JsonItem::Kind::kElement) {
        EXPECT_EQ(item->index, document.elements.size());
        document.elements.emplace_back(item->text);
        document.offsets.push_back(item->offset);
      }
      if (item->kind == JsonItem::Kind::kMember) {
        document.members.push_back(std::string(item->key) + "=" + std::string(item->text));
      }
    }
  }
  document.complete = splitter.complete();
  document.trailing = splitter.trailing_bytes();
  document.repairs =
      splitter.stats()[Stat::kRepairedEscape] + splitter.stats()[Stat::kRepairedUtf8];
  return document;
}

constexpr std::string_view kDocument =
    R"( {"a" : {"nodes":[1]}, "b\u0021":"x]},\"", "nodes" : [ {"id":1,"s":"}]\\"} , [2,[3]],"text",
 -4.5e6,null ], "c":[ ],"d":tr)"
    R"(ue } )";

TEST(JsonElements, CutsElementsAndMembers) {
  const Elements document = SplitElements(kDocument);
  EXPECT_EQ(document.error, "");
  EXPECT_EQ(document.elements, (std::vector<std::string>{R"({"id":1,"s":"}]\\"})", "[2,[3]]",
                                                         "\"text\"", "-4.5e6", "null"}));
  EXPECT_EQ(document.members,
            (std::vector<std::string>{R"(a={"nodes":[1]})", R"(b!="x]},\"")", "c=[ ]", "d=true"}));
  EXPECT_EQ(document.array, "nodes!");
  EXPECT_TRUE(document.complete);
  for (size_t i = 0; i < document.elements.size(); ++i) {
    EXPECT_EQ(kDocument.substr(document.offsets[i], document.elements[i].size()),
              document.elements[i]);
  }
}

TEST(JsonElements, ChunkSizeDoesNotMatter) {
  const Elements whole = SplitElements(kDocument);
  for (size_t chunk = 1; chunk < kDocument.size(); ++chunk) {
    const Elements parts = SplitElements(kDocument, chunk);
    EXPECT_EQ(parts.elements, whole.elements) << chunk;
    EXPECT_EQ(parts.members, whole.members) << chunk;
    EXPECT_EQ(parts.offsets, whole.offsets) << chunk;
    EXPECT_EQ(parts.error, "") << chunk;
  }
}

TEST(JsonElements, EveryCutIsSeen) {
  const Elements whole = SplitElements(kDocument);
  const size_t end = kDocument.rfind('}');
  for (size_t kept = 0; kept <= end; ++kept) {
    const Elements part = SplitElements(kDocument.substr(0, kept));
    EXPECT_FALSE(part.complete) << kept;
    EXPECT_EQ(part.error, "") << kept;
    ASSERT_LE(part.elements.size(), whole.elements.size());
    for (size_t i = 0; i < part.elements.size(); ++i) {
      EXPECT_EQ(part.elements[i], whole.elements[i]);
    }
  }
}

TEST(JsonElements, ReadsBareArraysAndByteOrderMarks) {
  const Elements document = SplitElements("\xEF\xBB\xBF [1,{}] \n");
  EXPECT_EQ(document.elements, (std::vector<std::string>{"1", "{}"}));
  EXPECT_TRUE(document.complete);
  EXPECT_EQ(document.trailing, 0u);
}

TEST(JsonElements, CountsWhatFollowsTheEnd) {
  const Elements document = SplitElements(std::string("{\"nodes\":[]} {\"x\" }\0\0", 21), 3);
  EXPECT_TRUE(document.complete);
  EXPECT_EQ(document.error, "");
  EXPECT_EQ(document.trailing, 8u);  // blanks in between included
}

TEST(JsonElements, RepairsOnlyWhereItMust) {
  EXPECT_EQ(SplitElements(R"({"nodes":["a\n\"\u00e9"]})").repairs, 0u);
  const Elements document =
      SplitElements("{\"nodes\":[{\"p\":\"C:\\q\"},\"\x01\",{\"u\":\"\xFF\"}],\"k\\z\":1}", 3);
  EXPECT_EQ(document.repairs, 4u);
  EXPECT_EQ(document.elements, (std::vector<std::string>{R"({"p":"C:\\q"})", R"("\u0001")",
                                                         "{\"u\":\"\xEF\xBF\xBD\"}"}));
  EXPECT_EQ(document.members, (std::vector<std::string>{"k\\z=1"}));
}

struct Malformed {
  const char* text;
  const char* message;  // part of it
};

TEST(JsonElements, SaysWhereADocumentIsMalformed) {
  const Malformed rows[] = {
      {"x", "f:byte 0: found 'x', expected a JSON object or array"},
      {"{1:2}", "byte 1: found '1', expected a key"},
      {"{\"a\" 1}", "byte 5: found '1', expected ':'"},
      {"{\"a\":1 \"b\"}", "byte 7: found '\"', expected ',' or '}'"},
      {"{\"a\":,}", "byte 5: found ',', expected a JSON value"},
      {"{\"a\":nul}", "the value of 'a' is not valid JSON"},
      {"{\"a\":[1}}", "byte 7: found '}', expected ']'"},
      {"{\"a\":[1 2]}", "the value of 'a' is not valid JSON"},
      {"{\"nodes\":{}}", "byte 9: found '{', expected '['"},
      {"{\"nodes\":[],\"nodes\":[]}", "found 'nodes' again"},
      {"{\"nodes\":[1,]}", "byte 12: found ']', expected a JSON value"},
      {"{\"nodes\":[{]}", "byte 11: found ']', expected '}'"},
      {"{\"nodes\":[1}", "byte 11: found '}', expected ',' or ']'"},
      {"{\"a\":1,}", "byte 7: found '}', expected a key"},
      {"\xFF\xFE{", "UTF-16"},
      {"{\"a\":\x01}", "found byte 0x01"},
  };
  for (const Malformed& row : rows) {
    for (const size_t chunk : {size_t{1}, size_t{100}}) {
      const Elements document = SplitElements(row.text, chunk);
      EXPECT_NE(document.error.find(row.message), std::string::npos) << row.text << "\n"
                                                                     << document.error;
    }
  }
}

TEST(JsonElements, EnforcesItsLimits) {
  Limits limits;
  limits.depth = 10;
  limits.element_bytes = 1000;
  const std::string deep = "{\"nodes\":[" + std::string(100'000, '[');
  EXPECT_NE(SplitElements(deep, 64, limits).error.find("limit 'depth'"), std::string::npos);
  EXPECT_NE(
      SplitElements("{\"x\":" + std::string(100'000, '{'), 64, limits).error.find("limit 'depth'"),
      std::string::npos);
  const std::string fits = "[" + std::string(10, '[') + std::string(10, ']') + "]";
  EXPECT_EQ(SplitElements(fits, 64, limits).error, "");
  for (const std::string start : {"[\"", "[{\"a\":\"", "{\"", "{\"a\":\"", "[1"}) {
    const Elements document = SplitElements(start + std::string(100'000, '1'), 64, limits);
    EXPECT_NE(document.error.find("limit 'element_bytes'"), std::string::npos) << start;
  }
}

constexpr auto kRepairedKeys = std::to_array<std::string_view>({"id", "name", "next"});
constexpr auto kRepairedAfterName = std::to_array<std::string_view>({"next"});
constexpr ElementRules kRepairRules = {
    .keys = kRepairedKeys, .after_name = kRepairedAfterName, .first = "id", .required = "id"};

// As readers do: reports elements that are not JSON.
std::vector<std::string> SplitRepaired(std::string_view text, size_t chunk, Stats& stats) {
  JsonElements splitter({.name = "f", .array_keys = {"nodes"}, .rules = &kRepairRules});
  std::vector<std::string> items;
  for (size_t at = 0; at < text.size() + chunk; at += chunk) {
    const std::string piece(at < text.size() ? text.substr(at, chunk) : "");
    if (piece.empty()) {
      splitter.End();
    } else {
      splitter.Push(piece);
    }
    while (true) {
      const auto item = splitter.Next();
      if (!item) return {item.error().message};
      if (item->kind == JsonItem::Kind::kNone) break;
      std::string copy(item->text);
      if (item->kind == JsonItem::Kind::kElement && !CheckJson(copy).valid) {
        const auto again = splitter.Reread();
        if (again && *again) continue;
        copy = "malformed";
      }
      if (item->kind != JsonItem::Kind::kArray) items.push_back(std::move(copy));
    }
  }
  stats = splitter.stats();
  return items;
}

TEST(JsonElements, RepairsElementsWithRulesInChunksOfAnySize) {
  constexpr std::string_view kDamaged = R"json({"nodes": [,
{"id": 1, "name": "5" tile", "next": 2},
{"id": 2, "name": "say "hi"", "next": 3},, {"id": 3, "name": "}"]}", "next": 4}
{"id": 4, "name": "C:\q\q "x"", "next": 5}, {"id": 5, "name": "no end, "next": 6},
{"id": 6,, "name": "a" "next": 7},
{"id": 7, "name": "a
b", "next": [8,]},
] "tail": 1,})json";
  const std::vector<std::string> expected = {R"({"id": 1, "name": "5\" tile", "next": 2})",
                                             R"({"id": 2, "name": "say \"hi\"", "next": 3})",
                                             R"({"id": 3, "name": "}\"]}", "next": 4})",
                                             R"({"id": 4, "name": "C:\\q\\q \"x\"", "next": 5})",
                                             "malformed",
                                             R"({"id": 6, "name": "a" ,"next": 7})",
                                             R"({"id": 7, "name": "a\u000ab", "next": [8]})",
                                             "1"};
  for (size_t chunk = 1; chunk <= kDamaged.size(); ++chunk) {
    Stats stats;
    EXPECT_EQ(SplitRepaired(kDamaged, chunk, stats), expected) << chunk;
    EXPECT_EQ(stats[Stat::kRepairedName], 4u) << chunk;
    EXPECT_EQ(stats[Stat::kRepairedComma], 9u) << chunk;
  }
}

// Only the length of an apparent element reveals the damage.
TEST(JsonElements, ANameHidesNothingOfALongDocumentWithoutLineEnds) {
  constexpr int kCount = 20'000;
  std::string text = R"({"nodes": [{"id": 0, "name": "5" tile", "next": 0})";
  for (int i = 1; i < kCount; ++i) {
    text += R"(, {"id": )" + std::to_string(i) + R"(, "name": "x", "next": [1]})";
  }
  text += "]}";
  for (const size_t chunk : {size_t{1000}, size_t{100'000}, text.size()}) {
    Stats stats;
    const std::vector<std::string> items = SplitRepaired(text, chunk, stats);
    ASSERT_EQ(items.size(), static_cast<size_t>(kCount)) << chunk;
    EXPECT_EQ(items.front(), R"({"id": 0, "name": "5\" tile", "next": 0})");
    EXPECT_EQ(stats[Stat::kRepairedName], 1u);
  }
}

// Random JSON whose strings are full of brackets, quotes and escapes.
std::string RandomValue(int depth) {
  const int kind = *rc::gen::inRange(0, depth > 3 ? 2 : 4);
  if (kind == 0) return std::to_string(*rc::gen::arbitrary<int>());
  if (kind == 1) {
    std::string text = "\"";
    for (const int piece : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 8))) {
      constexpr std::string_view kPieces[] = {"a", "\\\"", "\\\\",    "]",
                                              "}", "[{",   "\\u00e9", "\xC3\xA9"};
      text += kPieces[piece];
    }
    return text + "\"";
  }
  std::string text(1, kind == 2 ? '[' : '{');
  const int count = *rc::gen::inRange(0, 5);
  for (int i = 0; i < count; ++i) {
    if (i != 0) text += ", ";
    if (kind == 3) text += "\"k" + std::to_string(i) + "\":";
    text += RandomValue(depth + 1);
  }
  return text + (kind == 2 ? ']' : '}');
}

RC_GTEST_PROP(JsonElementsProperty, AnyDocumentComesOutAsItWentIn, ()) {
  std::vector<std::string> elements;
  const int count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count; ++i) elements.push_back(RandomValue(0));
  std::string text = "{\"first\":" + RandomValue(0) + ",\"nodes\":[";
  for (size_t i = 0; i < elements.size(); ++i) text += (i == 0 ? "" : " ,\n") + elements[i];
  text += "]}";
  const Elements document = SplitElements(text, *rc::gen::inRange<size_t>(1, 200));
  RC_ASSERT(document.error == "");
  RC_ASSERT(document.complete);
  RC_ASSERT(document.elements == elements);
  RC_ASSERT(document.repairs == 0u);
}

}  // namespace
}  // namespace etude
