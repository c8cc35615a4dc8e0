#include "src/formats/json/mend_element.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace etude {
namespace {

constexpr auto kKeys =
    std::to_array<std::string_view>({"ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id"});
constexpr auto kAfterName = std::to_array<std::string_view>({"pid"});
constexpr ElementRules kRules = {
    .keys = kKeys, .after_name = kAfterName, .first = "ph", .required = "ph"};
constexpr size_t kDepth = 100;
using Outcome = MendedElement::Outcome;

MendedElement Mend(const std::string& bytes, bool last = true) {
  return MendElement(bytes, last, kRules, kDepth);
}

constexpr std::string_view kHead = R"({"ph": "X", "name": ")";
constexpr std::string_view kTail = R"(", "pid": 1, "ts": 5, "args": {"l": [1, [2]], "s": "x"}})";
constexpr std::string_view kNext = R"(,
{"ph": "X", "name": "next", "pid": 1, "ts": 5}]})";

std::string DocumentWith(std::string_view name) {
  return std::string(kHead) + std::string(name) + std::string(kTail) + std::string(kNext);
}

TEST(MendElement, NamesEndWhereTheElementGoesOn) {
  struct Row {
    std::string_view written;
    std::string_view meant;  // valid JSON
  };
  const Row rows[] = {
      {R"(width 5" tile)", R"(width 5\" tile)"},
      {R"(5" by 6")", R"(5\" by 6\")"},
      {R"(")", R"(\")"},
      {R"("")", R"(\"\")"},
      {R"(say "hi" to them)", R"(say \"hi\" to them)"},
      {R"(line.split("}"))", R"(line.split(\"}\"))"},
      {R"(line.split("},"))", R"(line.split(\"},\"))"},
      {R"(a["]"] and {"}"})", R"(a[\"]\"] and {\"}\"})"},
      {R"({"device": "cpu", "dtype": "float32"}(12): run)",
       R"({\"device\": \"cpu\", \"dtype\": \"float32\"}(12): run)"},
      {R"({"ph": "X", "id": "7", "ts": "8"})", R"({\"ph\": \"X\", \"id\": \"7\", \"ts\": \"8\"})"},
      {R"(f("a", "b"))", R"(f(\"a\", \"b\"))"},
      {R"(C:\temp\)", R"(C:\temp\\)"},
      {R"(an escaped \" and a bare ")", R"(an escaped \" and a bare \")"},
  };
  for (const Row& row : rows) {
    const std::string text = DocumentWith(row.written);
    const MendedElement mended = Mend(text);
    ASSERT_EQ(mended.outcome, Outcome::kMended) << row.written;
    EXPECT_EQ(mended.text, std::string(kHead) + std::string(row.meant) + std::string(kTail));
    EXPECT_EQ(mended.length, kHead.size() + row.written.size() + kTail.size()) << row.written;
    EXPECT_EQ(mended.quotes, 1u) << row.written;
    EXPECT_EQ(mended.commas, 0u) << row.written;
    EXPECT_EQ(mended.first_repair, kHead.size()) << row.written;
  }
}

TEST(MendElement, LeavesValidElementsAlone) {
  for (const std::string_view name : {"aten::mm", R"(\"pid\": 1)", R"(}, {\"ph\": 1)"}) {
    const MendedElement mended = Mend(DocumentWith(name));
    EXPECT_EQ(mended.outcome, Outcome::kWhole) << name;
    EXPECT_EQ(mended.length, kHead.size() + name.size() + kTail.size()) << name;
  }
}

TEST(MendElement, OtherTextsAreRepairedWhereNothingElseWillDo) {
  const std::string args = R"({"ph": "M", "pid": 1, "args": {"name": "python -c "x"", "n": 1}})";
  const MendedElement mended = Mend(args + std::string(kNext));
  ASSERT_EQ(mended.outcome, Outcome::kMended);
  EXPECT_EQ(mended.text, R"({"ph": "M", "pid": 1, "args": {"name": "python -c \"x\"", "n": 1}})");
}

TEST(MendElement, Commas) {
  struct Row {
    std::string_view written;
    std::string_view meant;
    uint64_t commas;
  };
  const Row rows[] = {
      {R"({"ph": "X",, "ts": 1})", R"({"ph": "X", "ts": 1})", 1},
      {R"({"ph": "X", "ts": 1,})", R"({"ph": "X", "ts": 1})", 1},
      {R"({,"ph": "X", "ts": 1})", R"({"ph": "X", "ts": 1})", 1},
      {R"({"ph": "X" "ts": 1})", R"({"ph": "X" ,"ts": 1})", 1},
      {R"({"ph": "X", "args": [{"a": 1},, {"b": 2} {"c": 3},]})",
       R"({"ph": "X", "args": [{"a": 1}, {"b": 2} ,{"c": 3}]})", 3},
  };
  for (const Row& row : rows) {
    const MendedElement mended = Mend(std::string(row.written) + std::string(kNext));
    ASSERT_EQ(mended.outcome, Outcome::kMended) << row.written;
    EXPECT_EQ(mended.text, row.meant);
    EXPECT_EQ(mended.commas, row.commas) << row.written;
    EXPECT_EQ(mended.quotes, 0u) << row.written;
  }
}

TEST(MendElement, WhatCannotBeReadCostsOneElement) {
  const std::string open = R"({"ph": "X", "name": "no end, "pid": 1, "ts": 5})";
  const MendedElement lost = Mend(open + std::string(kNext));
  EXPECT_EQ(lost.outcome, Outcome::kLost);
  EXPECT_EQ(lost.length, open.size());
  const MendedElement last = Mend(open + R"(], "other": 1})");
  EXPECT_EQ(last.outcome, Outcome::kLost);
  EXPECT_EQ(last.length, open.size());
}

TEST(MendElement, AsksForMoreWhileTheEndIsNotThere) {
  const std::string text = DocumentWith(R"(5" by 6")");
  const size_t end = text.find("\"next\"");
  for (size_t size = 1; size < kHead.size() + 8 + kTail.size(); ++size) {
    EXPECT_EQ(Mend(text.substr(0, size), /*last=*/false).outcome, Outcome::kMore) << size;
  }
  EXPECT_EQ(Mend(text.substr(0, end), /*last=*/false).outcome, Outcome::kMended);
  EXPECT_EQ(Mend(text.substr(0, kHead.size() + 20)).outcome, Outcome::kCut);
}

TEST(MendElement, WaitsForBytesWhereTheyMayTellMore) {
  const std::string text = DocumentWith(R"({"device": "cpu"}][a)");
  for (size_t size = 1; size < text.find("next"); ++size) {
    const MendedElement mended = Mend(text.substr(0, size), /*last=*/false);
    if (mended.outcome == Outcome::kMore) continue;
    ASSERT_EQ(mended.outcome, Outcome::kMended) << size;
    EXPECT_NE(mended.text.find(R"({\"device\": \"cpu\"}][a)"), std::string::npos) << mended.text;
  }
}

TEST(MendElement, TellsWhetherAnotherElementFollows) {
  EXPECT_TRUE(HoldsNextElement(DocumentWith(R"(5" tile)"), kRules));
  EXPECT_FALSE(HoldsNextElement(std::string(kHead) + "5" + std::string(kTail), kRules));
  EXPECT_FALSE(
      HoldsNextElement(R"({"ph": "X", "args": [{"a": 1}, {"a": 2}], "l": [[1, 2)", kRules));
}

TEST(MendElement, BoundsNesting) {
  const std::string deep = R"({"ph": )" + std::string(1000, '[');
  EXPECT_EQ(Mend(deep).outcome, Outcome::kTooDeep);
}

// Any input takes a bounded number of ways.
TEST(MendElement, ManyPossibleEndsTakeBoundedTime) {
  std::string text(kHead);
  for (int i = 0; i < 20'000; ++i) text += R"(", "pid": )";
  EXPECT_NE(Mend(text).outcome, Outcome::kMended);
}

}  // namespace
}  // namespace etude
